/* Two network namespaces joined by one slow link, for tests and benchmarks: the kernel need not have netem.
 *
 *     lab_link RATE DELAY_US LOSS QUEUE SEED
 *
 * RATE is in bits a second, QUEUE in bytes, LOSS a share of packets; DELAY_US is one way. The program makes both
 * namespaces with a TUN device each (10.64.0.1 and 10.64.0.2), prints a line with the numbers of their two open files,
 * and passes packets on until its input ends; the namespaces end with it. Lines that it takes:
 *
 *     count                        print the packets and bytes of each direction: sent, lost, and dropped by a full queue
 *     set RATE DELAY_US LOSS QUEUE for packets that come from now on
 *
 * In each direction a packet waits until those before it have left at RATE, then travels for DELAY_US. A lost packet
 * takes its share of the rate. Which packets are lost depends on SEED and on how many went before them alone.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MTU = 1500, SLOTS = 1 << 15, BATCH = 64 };
#define WINDOW "4096 65536 33554432"

struct packet {
    int64_t due;
    int size;
    unsigned char bytes[MTU];
};

struct way { /* one direction */
    int from, to;
    int64_t free;        /* when the last packet has left */
    uint64_t luck;
    uint64_t first, end; /* of the ring */
    uint64_t sent, sent_bytes, lost, dropped;
    struct packet *ring;
};

static double rate, loss;
static int64_t delay, queue;

static void stop(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static double chance(uint64_t *luck) { /* splitmix64 */
    uint64_t z = (*luck += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53);
}

static void device_up(const char *name, const char *address) {
    int handle = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq ask;
    memset(&ask, 0, sizeof ask);
    strcpy(ask.ifr_name, name);
    struct sockaddr_in *place = (struct sockaddr_in *)&ask.ifr_addr;
    if (address) {
        place->sin_family = AF_INET;
        inet_pton(AF_INET, address, &place->sin_addr);
        if (ioctl(handle, SIOCSIFADDR, &ask) < 0) stop("address");
        inet_pton(AF_INET, "255.255.255.0", &place->sin_addr);
        if (ioctl(handle, SIOCSIFNETMASK, &ask) < 0) stop("netmask");
        ask.ifr_mtu = MTU;
        if (ioctl(handle, SIOCSIFMTU, &ask) < 0) stop("mtu");
        ask.ifr_qlen = SLOTS;
        if (ioctl(handle, SIOCSIFTXQLEN, &ask) < 0) stop("queue");
    }
    if (ioctl(handle, SIOCGIFFLAGS, &ask) < 0) stop("flags");
    ask.ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(handle, SIOCSIFFLAGS, &ask) < 0) stop("up");
    close(handle);
}

/* Let one connection of this namespace have as much under way as a long link holds; where it may not, it has less. */
static void widen(void) {
    int file = open("/proc/sys/net/ipv4/tcp_wmem", O_WRONLY);
    if (file >= 0 && write(file, WINDOW, sizeof WINDOW - 1) < 0) perror("tcp_wmem");
    close(file);
}

/* Enter a new namespace, and return its device; `space` is set to the open file of the namespace. */
static int host(const char *address, int *space) {
    if (unshare(CLONE_NEWNET) < 0) stop("a network namespace cannot be made");
    if ((*space = open("/proc/self/ns/net", O_RDONLY)) < 0) stop("namespace");
    widen();
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (device < 0) stop("/dev/net/tun");
    struct ifreq ask;
    memset(&ask, 0, sizeof ask);
    strcpy(ask.ifr_name, "lab");
    ask.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(device, TUNSETIFF, &ask) < 0) stop("a TUN device cannot be made");
    device_up("lab", address);
    device_up("lo", NULL);
    return device;
}

/* Read packets that wait at one end. */
static void take(struct way *way) {
    for (int count = 0; count < BATCH; count++) {
        struct packet *packet = &way->ring[way->end % SLOTS];
        ssize_t size = read(way->from, packet->bytes, MTU);
        if (size <= 0) return;
        if (packet->bytes[0] >> 4 != 4) continue; /* what IPv6 says by itself */
        int64_t at = now(), begins = way->free > at ? way->free : at;
        double waiting = (double)(begins - at) * rate / 8e9;
        if (waiting + (double)size > (double)queue || way->end - way->first == SLOTS - 1) {
            way->dropped++;
            continue;
        }
        way->free = begins + (int64_t)((double)size * 8e9 / rate);
        way->sent++;
        way->sent_bytes += (uint64_t)size;
        if (chance(&way->luck) < loss) {
            way->lost++;
            continue;
        }
        packet->due = way->free + delay;
        packet->size = (int)size;
        way->end++;
    }
}

/* Hand over the packets whose time has come; return when the next one's comes, or -1. */
static int64_t give(struct way *way) {
    while (way->first != way->end) {
        struct packet *packet = &way->ring[way->first % SLOTS];
        if (packet->due > now()) return packet->due;
        if (write(way->to, packet->bytes, (size_t)packet->size) < 0 && errno != EAGAIN && errno != EIO) stop("write");
        way->first++;
    }
    return -1;
}

static void count(const struct way *ways) {
    printf("[");
    for (int side = 0; side < 2; side++)
        printf("%s{\"packets\": %llu, \"size\": %llu, \"lost\": %llu, \"dropped\": %llu}", side ? ", " : "",
               (unsigned long long)ways[side].sent, (unsigned long long)ways[side].sent_bytes,
               (unsigned long long)ways[side].lost, (unsigned long long)ways[side].dropped);
    printf("]\n");
    fflush(stdout);
}

/* Carry out the lines of the input. False if it has ended. */
static int obey(const struct way *ways) {
    static char text[4096];
    static size_t held;
    ssize_t size = read(0, text + held, sizeof text - 1 - held);
    if (size <= 0) return 0;
    text[held += (size_t)size] = 0;
    char *line = text, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        long long delay_us, bytes;
        if (strncmp(line, "count", 5) == 0) count(ways);
        else if (sscanf(line, "set %lf %lld %lf %lld", &rate, &delay_us, &loss, &bytes) == 4)
            delay = delay_us * 1000, queue = bytes;
    }
    held = strlen(line);
    memmove(text, line, held + 1);
    return 1;
}

int main(int count, char **words) {
    if (count != 6) return fprintf(stderr, "lab_link RATE DELAY_US LOSS QUEUE SEED\n"), 2;
    rate = atof(words[1]), delay = atoll(words[2]) * 1000, loss = atof(words[3]), queue = atoll(words[4]);
    uint64_t seed = strtoull(words[5], NULL, 10);
    int spaces[2];
    int one = host("10.64.0.1", &spaces[0]), other = host("10.64.0.2", &spaces[1]);
    struct way ways[2] = {{.from = one, .to = other, .luck = 2 * seed}, {.from = other, .to = one, .luck = 2 * seed + 1}};
    for (int side = 0; side < 2; side++)
        if (!(ways[side].ring = calloc(SLOTS, sizeof(struct packet)))) stop("memory");
    prctl(PR_SET_TIMERSLACK, 1000);
    (void)setpriority(PRIO_PROCESS, 0, -10); /* where it may */
    printf("%d %d\n", spaces[0], spaces[1]);
    fflush(stdout);
    for (;;) {
        int64_t first = give(&ways[0]), second = give(&ways[1]);
        int64_t next = first < 0 || (second >= 0 && second < first) ? second : first, wait = next - now();
        struct timespec until = {.tv_sec = wait > 0 ? wait / 1000000000 : 0, .tv_nsec = wait > 0 ? wait % 1000000000 : 0};
        struct pollfd events[3] = {{.fd = 0, .events = POLLIN}, {.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
        if (ppoll(events, 3, next < 0 ? NULL : &until, NULL) < 0 && errno != EINTR) stop("ppoll");
        if (events[0].revents && !obey(ways)) return 0;
        if (events[1].revents) take(&ways[0]);
        if (events[2].revents) take(&ways[1]);
    }
}
