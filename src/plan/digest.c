/* Digests: what a plan and a policy are compared by. SHA-256 of FIPS 180-4, from libmd. */
#include "plan/make.h"

#include <sha2.h>

#include "policy/build.h"

static void hex(const uint8_t *bytes, size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * n] = 0;
}

static void finish(SHA2_CTX *sha, char ret[65])
{
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA256Final(sum, sha);
    hex(sum, sizeof sum, ret);
}

void sha256_hex(const void *bytes, size_t n, char ret[65])
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, bytes, n);
    finish(&sha, ret);
}

int plan_digests(struct plan *p, struct err *e)
{
    if (p->policy_digest[0])
        return 0;
    auto_buf struct buf text = BUF(MAX_POLICY_BYTES);
    int r = policy_canonical(p->policy, &text);
    if (r < 0 || !buf_ok(&text))
        return err_sys(e, ERR_SYSTEM, r < 0 ? -r : ENOMEM, "digest of the policy");

    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)p->image, p->image->bytes);
    for (const char **v = p->env; *v; v++) {
        SHA256Update(&sha, (const uint8_t *)*v, strcspn(*v, "="));
        SHA256Update(&sha, (const uint8_t *)"", 1);
    }
    finish(&sha, p->digest);

    const char *image = p->policy->image ? p->policy->image : "";
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)text.p, text.n);
    SHA256Update(&sha, (const uint8_t *)p->facts->engine, strlen(p->facts->engine) + 1);
    SHA256Update(&sha, (const uint8_t *)image, strlen(image) + 1);
    finish(&sha, p->policy_digest);
    return 0;
}
