/* Fails reads of files under one folder with EIO, and allocations with ENOMEM: an LD_PRELOAD library for
 * injected_faults.py, beside tests/faults/shim.c.
 *
 * Set up in a forked child by read_faults_arm() and allocations_arm(). A disk that goes bad fails at the n-th read, memory
 * at the n-th allocation of LEAST bytes or more, and with `lasting` at each one after it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long counted, fails_at;
static int lasts;

void read_faults_arm(const char *where, long at, int lasting) {
    snprintf(folder, sizeof folder, "%s", where ? where : "");
    counted = 0;
    fails_at = at;
    lasts = lasting;
}

long read_faults_counted(void) { return counted; }

static int fails(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    long number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
    if (!fails_at || (lasts ? number < fails_at : number != fails_at)) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *to, size_t size) {
    static __typeof__(&read) real;
    if (!real) real = REAL(read);
    return fails(fd) ? -1 : real(fd, to, size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at) {
    static __typeof__(&pread) real;
    if (!real) real = REAL(pread);
    return fails(fd) ? -1 : real(fd, to, size, at);
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at) {
    static __typeof__(&pread64) real;
    if (!real) real = REAL(pread64);
    return fails(fd) ? -1 : real(fd, to, size, at);
}

/* Smaller ones come out of what an allocator has already; Python takes those of up to 512 bytes from its own. */
#define LEAST 1024

static long allocated, allocation_fails_at;
static int allocations_armed, allocations_last;

void allocations_arm(long at, int lasting) {
    allocated = 0;
    allocation_fails_at = at;
    allocations_last = lasting;
    allocations_armed = 1;
}

long allocations_counted(void) { return allocated; }

static int refused(size_t size) {
    if (!allocations_armed || size < LEAST) return 0;
    long number = __atomic_add_fetch(&allocated, 1, __ATOMIC_SEQ_CST);
    if (!allocation_fails_at || (allocations_last ? number < allocation_fails_at : number != allocation_fails_at)) return 0;
    errno = ENOMEM;
    return 1;
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t size) { return refused(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refused(count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *from, size_t size) { return refused(size) ? NULL : __libc_realloc(from, size); }
