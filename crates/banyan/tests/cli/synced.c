/* Writes down what a program brings to the disk, and what it renames, before the system does it. Loaded into it before the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const char *what, const char *from, const char *to, long size) {
    char line[3 * PATH_MAX];
    const char *log = getenv("SYNCED_LOG");
    int length = snprintf(line, sizeof line, "%s\t%ld\t%ld\t%s\t%s\n", what, (long)syscall(SYS_gettid), size, from, to);
    int file = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || length >= (int)sizeof line || write(file, line, length) != length) abort();
    close(file);
}

static void note_sync(int file) {
    char link[64], path[PATH_MAX];
    struct stat is;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || fstat(file, &is) != 0) return;
    path[length] = 0;
    note("sync", path, "", (long)is.st_size);
}

int fsync(int file) {
    note_sync(file);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    note_sync(file);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int rename(const char *from, const char *to) {
    struct stat is;
    memset(&is, 0, sizeof is);
    if (stat(from, &is) == 0) note("rename", from, to, (long)is.st_size);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
