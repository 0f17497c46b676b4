/* Calls the target where there is no libFuzzer: inputs from files, changed at random for some seconds.
 *
 * driver SECONDS FILE... The changes are the same every time; how far it gets depends on the machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { MAX_BYTES = 1 << 14 };

static uint64_t state = 0x9e3779b97f4a7c15ULL;

static uint32_t drawn(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static const char *const WORDS[] = {"q1", "q2", " Q0 ", " 1 ", "\t", "\r", "\r\n", "\n", "nan", "1e400", "-0.0", "#", ".5",
                                    "d1", "\xef\xbb\xbf", "1_0", "0.12345678901234567", "999999999999999999"};

static size_t changed(uint8_t *bytes, size_t n) {
    for (uint32_t times = 1 + drawn(6); times; times--) {
        uint32_t at = n ? drawn((uint32_t)n) : 0, length = n ? drawn((uint32_t)(n - at) + 1) : 0;
        const char *word = WORDS[drawn(sizeof WORDS / sizeof *WORDS)];
        size_t word_length = strlen(word);
        switch (drawn(5)) {
            case 0: /* another byte */
                if (n) bytes[at] = (uint8_t)drawn(256);
                break;
            case 1: /* less */
                memmove(bytes + at, bytes + at + length, n - at - length);
                n -= length;
                break;
            case 2: /* something twice */
                if (n + length > MAX_BYTES) break;
                memmove(bytes + at + length, bytes + at, n - at);
                n += length;
                break;
            case 3: /* a word more */
                if (n + word_length > MAX_BYTES) break;
                memmove(bytes + at + word_length, bytes + at, n - at);
                memcpy(bytes + at, word, word_length);
                n += word_length;
                break;
            default: /* other options */
                if (n >= 8) bytes[drawn(8)] = (uint8_t)drawn(256);
        }
    }
    return n;
}

int main(int n_arguments, char **arguments) {
    if (n_arguments < 3) return 2;
    time_t end = time(NULL) + atoi(arguments[1]);
    static uint8_t original[MAX_BYTES];
    unsigned long runs = 0;
    do {
        for (int i = 2; i < n_arguments; i++) {
            FILE *file = fopen(arguments[i], "rb");
            if (!file) return 2;
            size_t n = fread(original, 1, MAX_BYTES, file);
            fclose(file);
            for (int times = 0; times < 200; times++, runs++) {
                uint8_t *bytes = malloc(MAX_BYTES);
                if (!bytes) return 2;
                memcpy(bytes, original, n);
                size_t changed_n = times ? changed(bytes, n) : n;
                uint8_t *exact = malloc(changed_n + 1);
                if (!exact) return 2;
                memcpy(exact, bytes, changed_n);
                LLVMFuzzerTestOneInput(exact, changed_n);
                free(exact), free(bytes);
            }
        }
    } while (time(NULL) < end);
    printf("Done %lu runs\n", runs);
    return 0;
}
