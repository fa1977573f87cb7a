/* Stops a writer at its n-th system call that changes a file: an LD_PRELOAD library for the tests.
 *
 * Counted are the calls that create, change, sync, rename or delete something under one folder, whoever
 * makes them: Python, SQLite through its table of function pointers, libstdc++'s ofstream. At the n-th of
 * them one fault happens (see `kinds`). Every counted call can be written to a trace (text) and to a log
 * (binary, with the data), from which replay.py builds what a disk may hold after a power loss.
 *
 * Set up by the environment of a process (FAULTS_FOLDER, FAULTS_AT, FAULTS_KIND, FAULTS_TRACE,
 * FAULTS_LOG, FAULTS_NOSYNC) or, in a forked child, by faults_arm(). One thread is expected to write.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, KILL_BEFORE, KILL_AFTER, ENOSPC_ONCE, FULL, EIO_ONCE, DEAD, SHORT, SHORT_FULL, SHORT_KILL };

static const char *const kinds[] = {
    "none",
    "kill-before", /* killed, the call is not made */
    "kill-after",  /* killed, the call was made */
    "enospc",      /* this call fails with ENOSPC */
    "full",        /* from this call on nothing new fits: creating and growing fail with ENOSPC */
    "eio",         /* this call fails with EIO */
    "dead",        /* from this call on everything fails with EIO */
    "short",       /* this write takes half of what it was given */
    "short-full",  /* the same, and from then on nothing new fits */
    "short-kill",  /* the same, and killed */
};

enum op { OPEN, CLOSE, WRITE, FSYNC, RENAME, UNLINK, TRUNCATE, MKDIR, RMDIR, ALLOCATE, NOTE };
static const char *const op_names[] = {"open",   "close",    "write", "fsync", "rename",   "unlink",
                                       "truncate", "mkdir", "rmdir", "allocate", "note"};

/* A record of the log; path, second path and data follow. Native byte order: it is read on the same machine. */
struct record {
    uint32_t op;
    int32_t fd;
    uint32_t number; /* of the counted call; 0 for one that is not counted */
    uint32_t flags;  /* of open; 1 for a sync that failed */
    uint32_t path_bytes, second_bytes;
    uint64_t offset, data_bytes;
};

#define MAX_FD 1024
#define MAX_PATH 1024

static char folder[MAX_PATH];
static size_t folder_bytes;
static long fault_at;
static enum kind fault_kind;
static int trace_fd = -1, log_fd = -1, no_sync;
static long counted;
static int full_now, dead_now;
static char paths[MAX_FD][MAX_PATH]; /* of open files under the folder; "" for others */

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        static const char text[] = "shim: a function is missing in libc\n";
        syscall(SYS_write, 2, text, sizeof text - 1);
        _exit(99);
    }
    return found;
}

static void put(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        long done = syscall(SYS_write, fd, at, bytes);
        if (done <= 0) _exit(98);
        at += done;
        bytes -= (size_t)done;
    }
}

/* Sets everything and starts counting at 1. NULL for a file that is not wanted. */
void faults_arm(const char *where, long at, const char *kind, const char *trace, const char *log, int unsynced) {
    fault_kind = NONE;
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i])) fault_kind = (enum kind)i;
    fault_at = at;
    no_sync = unsynced;
    counted = 0;
    full_now = dead_now = 0;
    trace_fd = trace ? (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    log_fd = log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    snprintf(folder, sizeof folder, "%s", where ? where : "");
    folder_bytes = strlen(folder);
}

long faults_counted(void) { return counted; }

__attribute__((constructor)) static void arm_from_environment(void) {
    const char *where = getenv("FAULTS_FOLDER"), *at = getenv("FAULTS_AT");
    if (where && *where)
        faults_arm(where, at ? atol(at) : 0, getenv("FAULTS_KIND"), getenv("FAULTS_TRACE"), getenv("FAULTS_LOG"),
                   getenv("FAULTS_NOSYNC") != NULL);
}

/* The absolute path, if it is under the folder; else "". */
static const char *under(int directory, const char *path, char out[MAX_PATH]) {
    out[0] = 0;
    if (!folder_bytes || !path) return out;
    if (path[0] == '/') {
        snprintf(out, MAX_PATH, "%s", path);
    } else {
        char link[64], base[MAX_PATH];
        snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
        long length = readlink(link, base, sizeof base - 1);
        if (length < 0) return out;
        base[length] = 0;
        if ((size_t)snprintf(out, MAX_PATH, "%s/%s", base, path) >= MAX_PATH) out[0] = 0;
    }
    if (strncmp(out, folder, folder_bytes) || (out[folder_bytes] && out[folder_bytes] != '/')) out[0] = 0;
    return out;
}

static const char *path_of(int fd) { return fd >= 0 && fd < MAX_FD ? paths[fd] : ""; }

static void log_call(enum op op, long number, int fd, const char *path, const char *second, unsigned flags,
                     uint64_t offset, const void *data, size_t bytes) {
    if (log_fd < 0) return;
    struct record record = {op, fd, (uint32_t)number, flags, (uint32_t)strlen(path),
                            second ? (uint32_t)strlen(second) : 0, offset, data ? bytes : 0};
    put(log_fd, &record, sizeof record);
    put(log_fd, path, record.path_bytes);
    if (second) put(log_fd, second, record.second_bytes);
    if (data) put(log_fd, data, bytes);
}

/* A line of the driver's own between the calls. */
void faults_note(const char *text) { log_call(NOTE, 0, -1, text, NULL, 0, 0, NULL, 0); }

static void die(void) {
    for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

struct call {
    long number;
    enum kind kind; /* the fault of this call */
    int error;      /* with which it fails instead of being made; 0 = it is made */
};

/* Counts a call. `grows`: it needs room that is not there yet. */
static struct call begin(enum op op, const char *path, size_t bytes, int grows) {
    struct call call = {++counted, NONE, 0};
    if (trace_fd >= 0) {
        char line[MAX_PATH + 64];
        int length = snprintf(line, sizeof line, "%ld %s %zu %s\n", call.number, op_names[op], bytes, path);
        put(trace_fd, line, (size_t)length);
    }
    if (call.number == fault_at) {
        call.kind = fault_kind;
        if (call.kind == KILL_BEFORE) die();
        if (call.kind == FULL) full_now = 1;
        if (call.kind == DEAD) dead_now = 1;
        if (call.kind == ENOSPC_ONCE) call.error = ENOSPC;
        if (call.kind == EIO_ONCE) call.error = EIO;
    }
    if (full_now && grows) call.error = ENOSPC;
    if (dead_now) call.error = EIO;
    return call;
}

static void end(const struct call *call) {
    int error = errno;
    if (call->kind == KILL_AFTER || call->kind == SHORT_KILL) die();
    if (call->kind == SHORT_FULL) full_now = 1;
    errno = error;
}

static int is_short(const struct call *call) {
    return call->kind == SHORT || call->kind == SHORT_FULL || call->kind == SHORT_KILL;
}

static int fail(int error) {
    errno = error;
    return -1;
}

/* ------------------------------------------------------------------ opening and closing */

static int changes(int flags) { return (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) == O_WRONLY; }

static void opened(int fd, const char *path, int flags, long number) {
    if (fd < 0 || fd >= MAX_FD) return;
    snprintf(paths[fd], MAX_PATH, "%s", path);
    log_call(OPEN, number, fd, path, NULL, (unsigned)flags, 0, NULL, 0);
}

static int open_any(int directory, const char *path, int flags, mode_t mode) {
    char full[MAX_PATH];
    under(directory, path, full);
    if (!full[0] || !changes(flags)) {
        int fd = (int)syscall(SYS_openat, directory, path, flags, mode);
        if (fd >= 0 && fd < MAX_FD) paths[fd][0] = 0;
        if (full[0]) opened(fd, full, flags, 0);
        return fd;
    }
    struct call call = begin(OPEN, full, 0, (flags & O_CREAT) && access(full, F_OK) != 0);
    if (call.error) return fail(call.error);
    int fd = (int)syscall(SYS_openat, directory, path, flags, mode);
    opened(fd, full, flags, call.number);
    end(&call);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN_LIKE(name)                                   \
    int name(const char *path, int flags, ...) {          \
        va_list rest;                                     \
        va_start(rest, flags);                            \
        mode_t mode = mode_of(flags, rest);               \
        va_end(rest);                                     \
        return open_any(AT_FDCWD, path, flags, mode);     \
    }
#define OPENAT_LIKE(name)                                 \
    int name(int directory, const char *path, int flags, ...) { \
        va_list rest;                                     \
        va_start(rest, flags);                            \
        mode_t mode = mode_of(flags, rest);               \
        va_end(rest);                                     \
        return open_any(directory, path, flags, mode);    \
    }
OPEN_LIKE(open)
OPENAT_LIKE(openat)
#ifdef __GLIBC__
OPEN_LIKE(open64)
OPENAT_LIKE(openat64)
int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char *path, int flags) { return open_any(directory, path, flags, 0); }
int __openat64_2(int directory, const char *path, int flags) { return open_any(directory, path, flags, 0); }
int creat64(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
#endif
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* libc's fopen calls its own open, which cannot be replaced; libstdc++ opens its files through it. */
static FILE *fopen_any(FILE *(*real_fopen)(const char *, const char *), const char *path, const char *mode) {
    char full[MAX_PATH];
    under(AT_FDCWD, path, full);
    int flags = mode[0] == 'w'   ? O_CREAT | O_TRUNC | O_WRONLY
                : mode[0] == 'a' ? O_CREAT | O_APPEND | O_WRONLY
                                 : O_RDONLY;
    struct call call = {0, NONE, 0};
    if (full[0] && changes(flags)) {
        call = begin(OPEN, full, 0, access(full, F_OK) != 0);
        if (call.error) {
            errno = call.error;
            return NULL;
        }
    }
    FILE *file = real_fopen(path, mode);
    if (file && fileno(file) < MAX_FD) paths[fileno(file)][0] = 0;
    if (file && full[0]) opened(fileno(file), full, flags, call.number);
    if (call.number) end(&call);
    return file;
}
FILE *fopen(const char *path, const char *mode) { return fopen_any(REAL(fopen), path, mode); }
#ifdef __GLIBC__
FILE *fopen64(const char *path, const char *mode) { return fopen_any(REAL(fopen64), path, mode); }
#endif

static void forget(int fd) {
    if (!path_of(fd)[0]) return;
    log_call(CLOSE, 0, fd, paths[fd], NULL, 0, 0, NULL, 0);
    paths[fd][0] = 0;
}
int close(int fd) {
    forget(fd);
    return (int)syscall(SYS_close, fd);
}
int fclose(FILE *file) {
    int fd = file ? fileno(file) : -1; /* closed below, its buffer being empty: libstdc++ writes by itself */
    forget(fd);
    return REAL(fclose)(file);
}

/* ------------------------------------------------------------------ writing */

/* One write of any shape; offset -1 is the file's own. */
static ssize_t write_any(int fd, const void *data, size_t bytes, off_t offset) {
    const char *path = path_of(fd);
    int at_own = offset < 0;
    if (!path[0]) return at_own ? syscall(SYS_write, fd, data, bytes) : syscall(SYS_pwrite64, fd, data, bytes, offset);
    struct stat now;
    off_t size = fstat(fd, &now) == 0 ? now.st_size : 0;
    off_t start = offset;
    if (at_own) start = syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND ? size : lseek(fd, 0, SEEK_CUR);
    struct call call = begin(WRITE, path, bytes, start + (off_t)bytes > size);
    if (call.error) return fail(call.error);
    if (is_short(&call) && bytes > 1) bytes /= 2; /* nothing written would be an error, not a short write */
    ssize_t done = at_own ? syscall(SYS_write, fd, data, bytes) : syscall(SYS_pwrite64, fd, data, bytes, offset);
    if (done > 0) log_call(WRITE, call.number, fd, path, NULL, 0, (uint64_t)start, data, (size_t)done);
    end(&call);
    return done;
}

static ssize_t writev_any(int fd, const struct iovec *parts, int count, off_t offset) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    char *joined = malloc(bytes ? bytes : 1), *at = joined;
    if (!joined) return fail(ENOMEM);
    for (int i = 0; i < count; i++) {
        memcpy(at, parts[i].iov_base, parts[i].iov_len);
        at += parts[i].iov_len;
    }
    ssize_t done = write_any(fd, joined, bytes, offset);
    int error = errno;
    free(joined);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t bytes) { return write_any(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) { return write_any(fd, data, bytes, offset); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return writev_any(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    return writev_any(fd, parts, count, offset);
}
#ifdef __GLIBC__
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) { return write_any(fd, data, bytes, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    return writev_any(fd, parts, count, offset);
}
#endif

static int truncate_any(int fd, off_t length) {
    const char *path = path_of(fd);
    if (!path[0]) return (int)syscall(SYS_ftruncate, fd, length);
    struct stat now;
    off_t size = fstat(fd, &now) == 0 ? now.st_size : 0;
    struct call call = begin(TRUNCATE, path, (size_t)length, length > size);
    if (call.error) return fail(call.error);
    int result = (int)syscall(SYS_ftruncate, fd, length);
    if (!result) log_call(TRUNCATE, call.number, fd, path, NULL, 0, (uint64_t)length, NULL, 0);
    end(&call);
    return result;
}
int ftruncate(int fd, off_t length) { return truncate_any(fd, length); }
#ifdef __GLIBC__
int ftruncate64(int fd, off64_t length) { return truncate_any(fd, length); }
#endif

/* Room reserved without writing; in the log it is a file made longer. */
static int allocate_any(int fd, int mode, off_t offset, off_t length) {
    const char *path = path_of(fd);
    if (!path[0]) return (int)syscall(SYS_fallocate, fd, mode, offset, length);
    struct call call = begin(ALLOCATE, path, (size_t)length, 1);
    if (call.error) return fail(call.error);
    int result = (int)syscall(SYS_fallocate, fd, mode, offset, length);
    if (!result && !mode) log_call(ALLOCATE, call.number, fd, path, NULL, 0, (uint64_t)(offset + length), NULL, 0);
    end(&call);
    return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) { return allocate_any(fd, mode, offset, length); }
int posix_fallocate(int fd, off_t offset, off_t length) { return allocate_any(fd, 0, offset, length) ? errno : 0; }
#ifdef __GLIBC__
int fallocate64(int fd, int mode, off64_t offset, off64_t length) { return allocate_any(fd, mode, offset, length); }
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    return allocate_any(fd, 0, offset, length) ? errno : 0;
}
#endif

/* ------------------------------------------------------------------ syncing */

static int sync_any(int fd, int only_data) {
    const char *path = path_of(fd);
    long call_number = only_data ? SYS_fdatasync : SYS_fsync;
    if (!path[0]) return (int)syscall(call_number, fd);
    struct call call = begin(FSYNC, path, 0, 0);
    if (call.error) {
        /* What was to be synced is dropped by the kernel and reported once: a later sync does not bring it. */
        log_call(FSYNC, call.number, fd, path, NULL, 1, 0, NULL, 0);
        return fail(call.error);
    }
    int result = no_sync ? 0 : (int)syscall(call_number, fd);
    if (!result) log_call(FSYNC, call.number, fd, path, NULL, 0, 0, NULL, 0);
    end(&call);
    return result;
}
int fsync(int fd) { return sync_any(fd, 0); }
int fdatasync(int fd) { return sync_any(fd, 1); }

/* ------------------------------------------------------------------ names */

static int rename_any(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    char source[MAX_PATH], target[MAX_PATH];
    under(from_directory, from, source);
    under(to_directory, to, target);
    if (!source[0] && !target[0])
        return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
    struct call call = begin(RENAME, target, 0, 0);
    if (call.error) return fail(call.error);
    int result = (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
    if (!result) log_call(RENAME, call.number, -1, source, target, flags, 0, NULL, 0);
    end(&call);
    return result;
}
int rename(const char *from, const char *to) { return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return rename_any(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    return rename_any(a, from, b, to, flags);
}

static int unlink_any(int directory, const char *path, int flags) {
    char full[MAX_PATH];
    under(directory, path, full);
    if (!full[0]) return (int)syscall(SYS_unlinkat, directory, path, flags);
    enum op op = flags & AT_REMOVEDIR ? RMDIR : UNLINK;
    struct call call = begin(op, full, 0, 0);
    if (call.error) return fail(call.error);
    int result = (int)syscall(SYS_unlinkat, directory, path, flags);
    if (!result) log_call(op, call.number, -1, full, NULL, 0, 0, NULL, 0);
    end(&call);
    return result;
}
int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return unlink_any(directory, path, flags); }
int rmdir(const char *path) { return unlink_any(AT_FDCWD, path, AT_REMOVEDIR); }

static int mkdir_any(int directory, const char *path, mode_t mode) {
    char full[MAX_PATH];
    under(directory, path, full);
    if (!full[0]) return (int)syscall(SYS_mkdirat, directory, path, mode);
    struct call call = begin(MKDIR, full, 0, access(full, F_OK) != 0);
    if (call.error) return fail(call.error);
    int result = (int)syscall(SYS_mkdirat, directory, path, mode);
    if (!result) log_call(MKDIR, call.number, -1, full, NULL, 0, 0, NULL, 0);
    end(&call);
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdir_any(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return mkdir_any(directory, path, mode); }
