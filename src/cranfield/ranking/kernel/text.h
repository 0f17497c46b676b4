/* Bytes looked at many at a time: white space, whole words, hashes. */
#ifndef CRANFIELD_TEXT_H
#define CRANFIELD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(SCAN_PORTABLE)
#include <emmintrin.h>
#endif

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define EACH_BYTE(byte) (0x0101010101010101ULL * (byte))

/* Bytes that belong to something else. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
} Slice;

/* A line is looked at in a window of 64 bytes, and a column that begins in it is read up to this many bytes from the
 * line's start: so many must be readable. */
enum { WINDOW = 64, READABLE = 96 };

static inline bool is_space(uint8_t byte) { return byte == ' ' || (uint8_t)(byte - '\t') <= '\r' - '\t'; }

static inline int lowest(uint64_t bits) { return __builtin_ctzll(bits); }

/* Eight bytes, the first one lowest. */
static inline uint64_t load8(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Up to eight bytes, the first one lowest, zeros above; reads no byte more. */
static inline uint64_t load_some(const uint8_t *p, size_t n) {
    uint8_t bytes[8] = {0};
    memcpy(bytes, p, n < 8 ? n : 8);
    return load8(bytes);
}

/* Which of 64 bytes are white space, and which are line feeds; bit i is byte i. */
typedef struct {
    uint64_t space, newline;
} Marks;

#if defined(__SSE2__) && !defined(SCAN_PORTABLE)

static inline Marks mark(const uint8_t *p) {
    const __m128i blank = _mm_set1_epi8(' '), feed = _mm_set1_epi8('\n'), tab = _mm_set1_epi8('\t');
    const __m128i last = _mm_set1_epi8('\r' - '\t');
    Marks marks = {0, 0};
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i control = _mm_sub_epi8(bytes, tab);
        __m128i in_range = _mm_cmpeq_epi8(_mm_min_epu8(control, last), control);
        __m128i space = _mm_or_si128(in_range, _mm_cmpeq_epi8(bytes, blank));
        marks.space |= (uint64_t)(uint32_t)_mm_movemask_epi8(space) << (16 * i);
        marks.newline |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, feed)) << (16 * i);
    }
    return marks;
}

#else

/* The high bit of every byte that is less than `bound`, which is at most 128. */
static inline uint64_t below(uint64_t word, uint8_t bound) {
    uint64_t high = EACH_BYTE(0x80);
    return ~(((word & ~high) + EACH_BYTE(0x80 - bound)) | word) & high;
}

/* The high bits of eight bytes, as eight bits. */
static inline uint64_t gathered(uint64_t high) { return ((high >> 7) * 0x0102040810204080ULL) >> 56; }

static inline Marks mark(const uint8_t *p) {
    Marks marks = {0, 0};
    for (int i = 0; i < 8; i++) {
        uint64_t word = load8(p + 8 * i);
        uint64_t control = below(word, '\r' + 1) & ~below(word, '\t');
        uint64_t blank = below(word ^ EACH_BYTE(' '), 1), feed = below(word ^ EACH_BYTE('\n'), 1);
        marks.space |= gathered(control | blank) << (8 * i);
        marks.newline |= gathered(feed) << (8 * i);
    }
    return marks;
}

#endif

/* Both halves of a product, folded. */
static inline uint64_t folded(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low, cross = a_high * b_low + (low >> 32);
    uint64_t other = a_low * b_high + (uint32_t)cross;
    uint64_t high = a_high * b_high + (cross >> 32) + (other >> 32);
    return ((other << 32) | (uint32_t)low) ^ high;
#endif
}

static inline uint64_t hash_ends(uint64_t a, uint64_t b, uint64_t state, const uint64_t seed[2]) {
    uint64_t mixed = folded(a ^ seed[0], b ^ state);
    return folded(mixed ^ seed[1], 0x9e3779b97f4a7c15ULL);
}

/* A keyed hash: who does not know the seed cannot choose ids that meet. */
static inline uint64_t hash_id(const uint8_t *p, size_t n, const uint64_t seed[2]) {
    uint64_t state = seed[1] + n;
    for (; n > 16; p += 16, n -= 16) state = folded(load8(p) ^ seed[0], load8(p + 8) ^ state);
    return hash_ends(load_some(p, n), n > 8 ? load_some(p + 8, n - 8) : 0, state, seed);
}

/* The same where 16 bytes more than the id are readable. */
static inline uint64_t hash_readable(const uint8_t *p, size_t n, const uint64_t seed[2]) {
    static const uint64_t ALL = ~0ULL;
    uint64_t state = seed[1] + n;
    for (; UNLIKELY(n > 16); p += 16, n -= 16) state = folded(load8(p) ^ seed[0], load8(p + 8) ^ state);
    uint64_t a = load8(p), b = load8(p + 8);
    if (n <= 8) {
        a &= n ? ALL >> (64 - 8 * n) : 0;
        b = 0;
    } else {
        b &= ALL >> (128 - 8 * n);
    }
    return hash_ends(a, b, state, seed);
}

static inline bool same_bytes(Slice a, const uint8_t *bytes, size_t length) {
    return a.length == length && (!length || !memcmp(a.bytes, bytes, length));
}

/* Byte order; of two ids that begin alike the shorter is less. */
static inline int compare_ids(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length) {
    size_t shorter = a_length < b_length ? a_length : b_length;
    int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

#endif
