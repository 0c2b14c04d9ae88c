/* Many SHA-256 in one call. The hash itself is OpenSSL's, the one that Python's hashlib uses: its functions are handed in.
 * A call of hashlib costs some 0.45 us, most of it not hashing; this loop is what is left when that is taken away.
 * hashing.py has the same two functions in Python, and uses them where this is not built. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST 32

typedef int (*init_fn)(void *);
typedef int (*update_fn)(void *, const void *, size_t);
typedef int (*final_fn)(unsigned char *, void *);

/* OpenSSL's SHA256_CTX has 112 bytes. */
typedef union {
    unsigned char bytes[256];
    uint64_t aligned;
} state;

/* The digest of each of `count` pieces of `data`, which lie between consecutive offsets. */
void antiphon_digests(init_fn init, update_fn update, final_fn final, const unsigned char *data, const int64_t *offsets,
                      size_t count, unsigned char *out) {
    state s;
    for (size_t i = 0; i < count; i++) {
        init(&s);
        update(&s, data + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        final(out + i * DIGEST, &s);
    }
}

/* out[i] = SHA-256(prefix, out[i - 1], header i, entries i), with `previous` before the first. */
void antiphon_chain(init_fn init, update_fn update, final_fn final, const unsigned char *prefix, size_t prefix_size,
                    const unsigned char *previous, const unsigned char *headers, size_t header_size,
                    const unsigned char *entries, const int64_t *offsets, size_t count, unsigned char *out) {
    state begun, s;
    init(&begun);
    update(&begun, prefix, prefix_size);
    for (size_t i = 0; i < count; i++) {
        memcpy(&s, &begun, sizeof s);
        update(&s, previous, DIGEST);
        update(&s, headers + i * header_size, header_size);
        if (offsets[i + 1] > offsets[i])
            update(&s, entries + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        final(out + i * DIGEST, &s);
        previous = out + i * DIGEST;
    }
}
