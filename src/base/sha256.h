/* SHA-256 (FIPS 180-4), from libmd, as 64 hexadecimal digits and a NUL. */
#pragma once
#include <sha2.h>

#include "base/hex.h"
#include "base/str.h"

/* Of all that `c` was given. */
static inline void sha256_end(SHA2_CTX *c, char ret[65])
{
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA256Final(sum, c);
    hex_digits(sum, sizeof sum, ret);
}

static inline void sha256_hex(struct str s, char ret[65])
{
    SHA2_CTX c;
    SHA256Init(&c);
    SHA256Update(&c, (const uint8_t *)s.p, s.n);
    sha256_end(&c, ret);
}
