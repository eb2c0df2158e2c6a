/*
 * Digests by which plans and policies are compared: SHA-256 (FIPS 180-4), from libmd. What is in one is listed here,
 * since two sessions are of one policy if it is equal.
 */
#include "plan/make.h"

#include <errno.h>
#include <stdlib.h>
#include "base/sha256.h"

#include "policy/build.h"

void plan_image_digest(const struct plan *p, char ret[65])
{
    sha256_hex((struct str){(const char *)p->image, p->image->bytes}, ret);
}

void plan_masks_digest(const struct plan *p, char ret[65])
{
    const struct plan_image *image = p->image;
    const struct step *s = plan_steps(image);
    const uint32_t ids[] = {image->uid, image->gid};
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)PINFOLD_VERSION, sizeof PINFOLD_VERSION);
    SHA256Update(&sha, (const uint8_t *)ids, sizeof ids);
    for (uint32_t i = 0; i < image->n_steps; i++) {
        const struct step *stubs = s[i].kind == STEP_VEIL ? s + i + 1 : NULL;
        if (stubs)
            SHA256Update(&sha, (const uint8_t *)plan_string(image, s[i].a), strlen(plan_string(image, s[i].a)) + 1);
        for (uint32_t k = 0; stubs && k < s[i].b; k++) {
            const uint32_t words[] = {s[i].b, stubs[k].mode, stubs[k].flags};
            const char *texts[] = {plan_string(image, stubs[k].a), plan_string(image, stubs[k].b)};
            SHA256Update(&sha, (const uint8_t *)words, sizeof words);
            for (int t = 0; t < 2; t++)
                SHA256Update(&sha, (const uint8_t *)texts[t], strlen(texts[t]) + 1);
        }
    }
    sha256_end(&sha, ret);
}

/* An image counts by its id, because its name may come to mean another image. */
static void policy_sum(const struct policy *p, const char *engine, const char *image_id, const struct buf *text,
                       char ret[65])
{
    const char *image = p->image ? p->image : "";
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)text->p, text->n);
    SHA256Update(&sha, (const uint8_t *)engine, strlen(engine) + 1);
    SHA256Update(&sha, (const uint8_t *)image, strlen(image) + 1);
    if (image_id && image_id[0])
        SHA256Update(&sha, (const uint8_t *)image_id, strlen(image_id) + 1);
    sha256_end(&sha, ret);
}

/* The policy without what belongs to single commands, and without values of variables, which may be secrets. */
static int canonical(const struct policy *p, struct buf *text, struct err *e)
{
    struct policy shared = *p;
    struct env_rule *env = calloc(p->n_env + 1, sizeof *env);
    if (!env)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot compute the policy's digest");
    for (size_t i = 0; i < p->n_env; i++) {
        env[i] = p->env[i];
        if (env[i].value)
            env[i].value = "";
    }
    shared.env = env;
    shared.limits.timeout.value = shared.limits.grace.value = shared.limits.output.value = LIMIT_NONE;
    int r = policy_canonical(&shared, text);
    free(env);
    return r < 0 || !buf_ok(text) ? err_sys(e, ERR_SYSTEM, r < 0 ? -r : ENOMEM, "cannot compute the policy's digest")
                                  : 0;
}

int policy_digest(const struct policy *p, const char *engine, const char *image_id, char ret[65], struct err *e)
{
    auto_buf struct buf text = BUF(MAX_POLICY_BYTES);
    int r = canonical(p, &text, e);
    if (r < 0)
        return r;
    policy_sum(p, engine, image_id, &text, ret);
    return 0;
}

void policy_values_digest(const struct policy *p, const char *salt, char ret[65])
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)salt, strlen(salt) + 1);
    for (size_t i = 0; i < p->n_env; i++) {
        const struct env_rule *v = &p->env[i];
        if (!v->value || v->remove)
            continue;
        SHA256Update(&sha, (const uint8_t *)v->name, strlen(v->name) + 1);
        SHA256Update(&sha, (const uint8_t *)v->value, strlen(v->value) + 1);
    }
    sha256_end(&sha, ret);
}

int plan_digests(struct plan *p, struct err *e)
{
    SHA2_CTX sha;
    if (p->digest[0])
        return 0;
    if (!p->policy_digest[0]) {
        int r = policy_digest(p->policy, p->facts->engine, p->facts->image ? p->facts->image->id : NULL,
                              p->policy_digest, e);
        if (r < 0)
            return r;
    }

    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)p->image, p->image->bytes);
    for (const char **v = p->env; *v; v++) {
        SHA256Update(&sha, (const uint8_t *)*v, strcspn(*v, "="));
        SHA256Update(&sha, (const uint8_t *)"", 1);
    }
    if (p->facts->image) /* the name may come to mean another image */
        SHA256Update(&sha, (const uint8_t *)p->facts->image->id, strlen(p->facts->image->id) + 1);
    sha256_end(&sha, p->digest);
    return 0;
}
