/* A file layer that remembers what was synced. Preloaded (LD_PRELOAD) into a process that writes a store, it logs
 * every write to data.mdb, every sync of it, and every mark that the process sets when it acknowledges something.
 * A test replays the log, drops what was not synced at a mark, and looks whether a store is left that keeps the
 * promise.
 *
 * A record of the log: kind (1 byte), 1 if the descriptor was opened O_DSYNC (1 byte), offset (8), size (8), data.
 *   w  a write            s  a sync of the file         m  a mark; offset is its number
 *   t  a truncation       d  a sync of a folder         x  something that this layer cannot follow
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS = 4096 };
static unsigned char watched[FDS]; /* 0: another file, 1: data.mdb, 2: data.mdb opened O_DSYNC */
static int log_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ANTIPHON_UNSYNCED_LOG");
    if (path) log_fd = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int watching(int fd) { return fd >= 0 && fd < FDS ? watched[fd] : 0; }

static void note(char kind, int fd, uint64_t offset, const struct iovec *parts, int count) {
    if (log_fd < 0) return;
    unsigned char head[18] = {(unsigned char)kind, watching(fd) == 2};
    uint64_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    memcpy(head + 2, &offset, 8);
    memcpy(head + 10, &size, 8);
    if (REAL(write)(log_fd, head, sizeof head) != (ssize_t)sizeof head) abort();
    for (int i = 0; i < count; i++)
        if (REAL(write)(log_fd, parts[i].iov_base, parts[i].iov_len) != (ssize_t)parts[i].iov_len) abort();
}

static void note_written(int fd, ssize_t done, uint64_t offset, const struct iovec *parts, int count) {
    size_t asked = 0;
    for (int i = 0; i < count; i++) asked += parts[i].iov_len;
    if (done == (ssize_t)asked) note('w', fd, offset, parts, count);
    else if (done > 0) note('x', fd, 0, NULL, 0); /* a short write */
}

void unsynced_mark(uint64_t number) {
    pthread_mutex_lock(&lock);
    note('m', -1, number, NULL, 0);
    pthread_mutex_unlock(&lock);
}

static int opened(int fd, const char *path, int flags) {
    size_t size = strlen(path);
    if (fd >= 0 && fd < FDS && size >= 9 && strcmp(path + size - 9, "/data.mdb") == 0)
        watched[fd] = flags & O_DSYNC ? 2 : 1;
    return fd;
}

static int mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; }

#define OPEN(name)                                                     \
    int name(const char *path, int flags, ...) {                       \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        int mode = mode_of(flags, rest);                               \
        va_end(rest);                                                  \
        return opened(REAL(name)(path, flags, mode), path, flags);     \
    }
#define OPENAT(name)                                                   \
    int name(int at, const char *path, int flags, ...) {               \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        int mode = mode_of(flags, rest);                               \
        va_end(rest);                                                  \
        return opened(REAL(name)(at, path, flags, mode), path, flags); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (fd >= 0 && fd < FDS) watched[fd] = 0;
    return REAL(close)(fd);
}

/* The call and its record are made under one lock, so that the log's order is the order of what happened. */
#define LOGGED(fd, call, then)                        \
    if (!watching(fd)) return call;                   \
    pthread_mutex_lock(&lock);                        \
    __typeof__(call) done = call;                     \
    then;                                             \
    pthread_mutex_unlock(&lock);                      \
    return done;

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    struct iovec part = {(void *)data, size};
    LOGGED(fd, REAL(pwrite)(fd, data, size, offset), note_written(fd, done, (uint64_t)offset, &part, 1))
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    struct iovec part = {(void *)data, size};
    LOGGED(fd, REAL(pwrite64)(fd, data, size, offset), note_written(fd, done, (uint64_t)offset, &part, 1))
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    LOGGED(fd, REAL(pwritev)(fd, parts, count, offset), note_written(fd, done, (uint64_t)offset, parts, count))
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    LOGGED(fd, REAL(pwritev64)(fd, parts, count, offset), note_written(fd, done, (uint64_t)offset, parts, count))
}

ssize_t write(int fd, const void *data, size_t size) {
    struct iovec part = {(void *)data, size};
    off_t at = watching(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    LOGGED(fd, REAL(write)(fd, data, size), note_written(fd, done, (uint64_t)at, &part, 1))
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    off_t at = watching(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    LOGGED(fd, REAL(writev)(fd, parts, count), note_written(fd, done, (uint64_t)at, parts, count))
}

int ftruncate(int fd, off_t size) {
    LOGGED(fd, REAL(ftruncate)(fd, size), if (!done) note('t', fd, (uint64_t)size, NULL, 0))
}

int ftruncate64(int fd, off64_t size) {
    LOGGED(fd, REAL(ftruncate64)(fd, size), if (!done) note('t', fd, (uint64_t)size, NULL, 0))
}

int fdatasync(int fd) { LOGGED(fd, REAL(fdatasync)(fd), if (!done) note('s', fd, 0, NULL, 0)) }

int fsync(int fd) {
    struct stat about;
    if (!watching(fd) && !fstat(fd, &about) && S_ISDIR(about.st_mode)) {
        int done = REAL(fsync)(fd);
        pthread_mutex_lock(&lock);
        if (!done) note('d', fd, 0, NULL, 0);
        pthread_mutex_unlock(&lock);
        return done;
    }
    LOGGED(fd, REAL(fsync)(fd), if (!done) note('s', fd, 0, NULL, 0))
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (watching(fd) && (protection & PROT_WRITE) && (flags & MAP_SHARED)) note('x', fd, 0, NULL, 0);
    return REAL(mmap)(at, size, protection, flags, fd, offset);
}
