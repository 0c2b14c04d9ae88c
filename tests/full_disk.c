/* A disk that becomes full, for tests: preloaded into processes, it lets the writes into one folder fail from the n-th on.
 *
 * FULL_DISK_FOLDER is the folder. FULL_DISK_COUNT is a file of two 64-bit numbers, shared by all processes: how many
 * writes there were, and after how many the disk is full (negative: never). With FULL_DISK_KILL the process is killed at
 * that write instead, and renaming, deleting and syncing count as writes, too.
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t *shared;
static const char *folder;
static int killing;

__attribute__((constructor)) static void begin(void) {
    folder = getenv("FULL_DISK_FOLDER");
    killing = getenv("FULL_DISK_KILL") != NULL;
    const char *count = getenv("FULL_DISK_COUNT");
    int handle = folder && count ? open(count, O_RDWR | O_CLOEXEC) : -1;
    if (handle < 0) return;
    void *found = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (found != MAP_FAILED) shared = found;
}

static int full(const char *path) {
    if (!shared || strncmp(path, folder, strlen(folder)) != 0) return 0;
    int64_t number = __atomic_add_fetch(&shared[0], 1, __ATOMIC_SEQ_CST);
    int64_t limit = __atomic_load_n(&shared[1], __ATOMIC_SEQ_CST);
    if (limit < 0 || number <= limit) return 0;
    if (killing) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

static int full_at(int handle) {
    char link[40], path[PATH_MAX];
    if (!shared) return 0;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = before;
    if (size < 0) return 0;
    path[size] = 0;
    return full(path);
}

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                             \
    int name(const char *path, int flags, ...) {                               \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode_t mode = va_arg(rest, mode_t);                                    \
        va_end(rest);                                                          \
        if ((flags & O_CREAT) && access(path, F_OK) != 0 && full(path)) return -1; \
        return REAL(name)(path, flags, mode);                                  \
    }
OPEN(open)
OPEN(open64)

#define WRITE(name, ...)                                                       \
    ssize_t name(int handle, __VA_ARGS__)

WRITE(write, const void *data, size_t size) { return full_at(handle) ? -1 : REAL(write)(handle, data, size); }
WRITE(pwrite, const void *data, size_t size, off_t at) {
    return full_at(handle) ? -1 : REAL(pwrite)(handle, data, size, at);
}
WRITE(pwrite64, const void *data, size_t size, off64_t at) {
    return full_at(handle) ? -1 : REAL(pwrite64)(handle, data, size, at);
}
WRITE(writev, const struct iovec *parts, int count) { return full_at(handle) ? -1 : REAL(writev)(handle, parts, count); }

int mkdir(const char *path, mode_t mode) {
    return access(path, F_OK) != 0 && full(path) ? -1 : REAL(mkdir)(path, mode);
}

int rename(const char *from, const char *to) { return killing && full(to) ? -1 : REAL(rename)(from, to); }
int unlink(const char *path) { return killing && full(path) ? -1 : REAL(unlink)(path); }
int fsync(int handle) { return killing && full_at(handle) ? -1 : REAL(fsync)(handle); }
