/* The numbers of a run file, from text: scores exactly as the nearest double, ranks as whole numbers. */
#ifndef CRANFIELD_NUMBER_H
#define CRANFIELD_NUMBER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#if defined(__APPLE__) || defined(__FreeBSD__)
#include <xlocale.h>
#endif

#include "array.h"
#include "types.h"

/* Where doubles are not calculated in a wider type, one operation on exact numbers gives the nearest double. */
#define EXACT_ARITHMETIC (FLT_EVAL_METHOD == 0)

static const double POWERS_OF_10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const uint64_t WHOLE_POWERS_OF_10[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
static const uint64_t EXACT_INTEGERS = 1ULL << 53;
enum { EXACT_POWERS = 22, DIVISIBLE_POWERS = 27, MAX_DIGITS = 19 };

static inline bool is_digit(uint8_t byte) { return (uint8_t)(byte - '0') <= 9; }

/* The number that 1 to 8 bytes say; 8 must be readable. False where one is no digit. */
static inline bool parse_digits(const uint8_t *p, size_t n, uint64_t *value) {
    uint64_t digits = (load8(p) ^ EACH_BYTE('0')) << (64 - 8 * n);
    if (UNLIKELY(((digits + EACH_BYTE(0x76)) | digits) & EACH_BYTE(0x80))) return false;
    digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ffULL;
    digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffffULL;
    *value = (digits * 10000 + (digits >> 32)) & 0xffffffffULL;
    return true;
}

#ifdef __SIZEOF_INT128__
/* mantissa / 10**places, to the nearest double; the mantissa is not 0 and places are at most DIVISIBLE_POWERS.
 *
 * Both numbers are shifted to 64 bits, so the quotient has 63 or 64; what is left of the division sets its last bit,
 * far below the 53 that stay, and the conversion to double rounds once. */
static inline double divided(uint64_t mantissa, int places) {
    uint64_t divisor = 1;
    for (int i = 0; i < places; i++) divisor *= 5;
    int a = __builtin_clzll(mantissa), b = __builtin_clzll(divisor);
    unsigned __int128 numerator = (unsigned __int128)(mantissa << a) << 63;
    divisor <<= b;
    uint64_t quotient = (uint64_t)(numerator / divisor);
    quotient |= (uint64_t)(numerator - (unsigned __int128)quotient * divisor) != 0;
    return ldexp((double)quotient, b - a - places - 63);
}
#define CAN_DIVIDE 1
#else
static inline double divided(uint64_t mantissa, int places) { return (double)mantissa / POWERS_OF_10[places]; }
#define CAN_DIVIDE 0
#endif

/* mantissa * 10**exponent to the nearest double; false where that takes more than is done here. */
static inline bool scaled(uint64_t mantissa, int exponent, double *value) {
    if (!EXACT_ARITHMETIC) return false;
    if (LIKELY(mantissa <= EXACT_INTEGERS && exponent <= 0 && exponent >= -EXACT_POWERS)) {
        *value = (double)mantissa / POWERS_OF_10[-exponent];
    } else if (mantissa <= EXACT_INTEGERS && exponent > 0 && exponent <= EXACT_POWERS) {
        *value = (double)mantissa * POWERS_OF_10[exponent];
    } else if (CAN_DIVIDE && mantissa && exponent <= 0 && exponent >= -DIVISIBLE_POWERS) {
        *value = divided(mantissa, -exponent);
    } else {
        return false;
    }
    return true;
}

/* The commonest spellings, `[-]digits[.digits]` of up to 8 and 16 digits; READABLE bytes must be. False: look closer. */
static inline bool parse_plain_score(const uint8_t *p, size_t n, double *value) {
    size_t negative = *p == '-';
    p += negative, n -= negative;
    uint64_t dots = load8(p) ^ EACH_BYTE('.');
    dots = (dots - EACH_BYTE(1)) & ~dots & EACH_BYTE(0x80);
    size_t whole = dots ? (size_t)lowest(dots) / 8 : 8, places = 0;
    uint64_t mantissa, digits;
    if (whole >= n) {
        if (n == 0 || n > 8 || !parse_digits(p, n, &mantissa)) return false;
    } else {
        places = n - whole - 1;
        const uint8_t *fraction = p + whole + 1;
        if (!whole || !places || places > 16 || whole + places > MAX_DIGITS || p[whole] != '.') return false;
        if (!parse_digits(p, whole, &mantissa)) return false;
        if (places > 8) {
            if (!parse_digits(fraction, 8, &digits)) return false;
            mantissa = mantissa * WHOLE_POWERS_OF_10[8] + digits;
            if (!parse_digits(fraction + 8, places - 8, &digits)) return false;
            mantissa = mantissa * WHOLE_POWERS_OF_10[places - 8] + digits;
        } else {
            if (!parse_digits(fraction, places, &digits)) return false;
            mantissa = mantissa * WHOLE_POWERS_OF_10[places] + digits;
        }
    }
    double size;
    if (!scaled(mantissa, -(int)places, &size)) return false;
    *value = negative ? -size : size;
    return true;
}

typedef enum { NUMBER_FINE, NUMBER_BAD, NUMBER_NO_MEMORY } NumberStatus;

/* What the C library makes of text that is known to be a number, whatever the locale of the process. */
static NumberStatus parse_by_library(const uint8_t *p, size_t n, locale_t locale, double *value) {
    char text[128], *copy = n < sizeof text ? text : SCAN_REALLOC(NULL, n + 1);
    if (!copy) return NUMBER_NO_MEMORY;
    memcpy(copy, p, n);
    copy[n] = '\0';
    *value = strtod_l(copy, NULL, locale);
    if (copy != text) SCAN_FREE(copy);
    return isfinite(*value) ? NUMBER_FINE : NUMBER_BAD;
}

/* Any score: `[+-](digits[.digits]|.digits)[(e|E)[+-]digits]`, finite; nothing beyond the text is read. */
static NumberStatus parse_score(const uint8_t *text, size_t n, locale_t locale, double *value) {
    const uint8_t *p = text, *end = text + n;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    size_t n_digits = 0, significant = 0;
    for (bool dot = false; p < end && (is_digit(*p) || (*p == '.' && !dot)); p++) {
        if (*p == '.') {
            dot = true;
            continue;
        }
        n_digits++;
        exponent -= dot;
        significant += significant || *p != '0';
        if (significant <= MAX_DIGITS) mantissa = mantissa * 10 + (*p - '0');
    }
    if (!n_digits) return NUMBER_BAD;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool down = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        if (p == end || !is_digit(*p)) return NUMBER_BAD;
        int64_t written = 0;
        for (; p < end && is_digit(*p); p++) written = written < 1000000 ? written * 10 + (*p - '0') : written;
        exponent += down ? -written : written;
    }
    if (p < end) return NUMBER_BAD;
    bool small = significant <= MAX_DIGITS && exponent >= -DIVISIBLE_POWERS && exponent <= EXACT_POWERS;
    if (small && scaled(mantissa, (int)exponent, value)) {
        if (negative) *value = -*value;
        return NUMBER_FINE;
    }
    return parse_by_library(text, n, locale, value);
}

/* `[+-]` and 1 to 18 digits; anything else is NO_RANK. Nothing beyond the text is read. */
static int64_t parse_rank(const uint8_t *p, size_t n) {
    bool negative = n && *p == '-';
    size_t sign = n && (*p == '-' || *p == '+');
    p += sign, n -= sign;
    if (n < 1 || n > 18) return NO_RANK;
    int64_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(p[i])) return NO_RANK;
        rank = rank * 10 + (p[i] - '0');
    }
    return negative ? -rank : rank;
}

#endif
