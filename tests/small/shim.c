/* A machine with a clock that jumps and a disk that is slow: an LD_PRELOAD library for the tests.
 *
 * SMALL_CLOCK_S=N   the time of day is N seconds off, and jumps between +N and -N at every call
 * SMALL_CLOCK_AT=N  the time of day began at N seconds after 1970 when the process did
 * SMALL_SYNC_MS=N   every fsync and fdatasync takes N milliseconds more
 * SMALL_READ_US=N   every read and pread of a file takes N microseconds more
 *
 * Only the time of day is touched: what clocks measure durations with does not jump on a real machine either.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;
static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find(void) { *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime"); }

static void tell(struct timespec *at) {
  static _Atomic(time_t) began;
  long jump = number("SMALL_CLOCK_S");
  real_clock_gettime(CLOCK_REALTIME, at);
  if (getenv("SMALL_CLOCK_AT")) {
    time_t none = 0;
    atomic_compare_exchange_strong(&began, &none, at->tv_sec);
    at->tv_sec = number("SMALL_CLOCK_AT") + at->tv_sec - atomic_load(&began);
  }
  at->tv_sec += atomic_fetch_add(&calls, 1) % 2 ? jump : -jump;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  if (!real_clock_gettime) find();
  if (clock != CLOCK_REALTIME) return real_clock_gettime(clock, at);
  tell(at);
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  tell(&now);
  at->tv_sec = now.tv_sec, at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  tell(&now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static void wait_us(long us) {
  struct timespec length = {us / 1000000, us % 1000000 * 1000};
  if (us > 0) nanosleep(&length, NULL);
}

int fsync(int file) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  wait_us(1000 * number("SMALL_SYNC_MS"));
  return real(file);
}

int fdatasync(int file) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
  wait_us(1000 * number("SMALL_SYNC_MS"));
  return real(file);
}

static void wait_for_read(int file) {
  struct stat status;
  if (getenv("SMALL_READ_US") && !fstat(file, &status) && S_ISREG(status.st_mode)) wait_us(number("SMALL_READ_US"));
}

ssize_t read(int file, void *data, size_t size) {
  static ssize_t (*real)(int, void *, size_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "read");
  wait_for_read(file);
  return real(file, data, size);
}

ssize_t pread64(int file, void *data, size_t size, off_t offset) {
  static ssize_t (*real)(int, void *, size_t, off_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pread64");
  wait_for_read(file);
  return real(file, data, size, offset);
}

ssize_t pread(int file, void *data, size_t size, off_t offset) { return pread64(file, data, size, offset); }
