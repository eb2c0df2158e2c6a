/*
 * Hands on how a command ended: --json, --result, the exit status; and what was left out of what was asked for. The
 * verbs that run something end here, with or without a result.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"

#define MAX_FAILURE_JSON (1u << 16)

int complain_left(const struct pinfold_value *list, const char *why)
{
    int status = STATUS_YES;
    for (const struct pinfold_value *v = pinfold_value_first(list); v; v = pinfold_value_next(v)) {
        const char *path = pinfold_value_text(pinfold_value_get(v, "path"), NULL);
        const char *said = pinfold_value_text(pinfold_value_get(v, why), NULL);
        complain("%s: %s", path ? path : "", said ? said : "");
        status = STATUS_NO;
    }
    return status;
}

static bool write_line(int fd, const char *text)
{
    auto_buf struct buf line = BUF((size_t)1 << 30);
    buf_text(&line, text);
    buf_char(&line, '\n');
    for (size_t at = 0; buf_ok(&line) && at < line.n;) {
        ssize_t n = write(fd, line.p + at, line.n - at);
        if (n < 0) {
            complain("cannot write the result: %s", strerror(errno));
            return false;
        }
        at += (size_t)n;
    }
    return buf_ok(&line);
}

/* The result when no command ran: the members of every result, with an error. */
static void failure_json(const struct pinfold_error *error, struct buf *out)
{
    static const char kinds[][8] = {"none", "policy", "cannot", "refused", "system", "bug"};
    static const char *const nulls[] = {"exit_code", "signal"};
    static const char *const more[] = {"limit", "stdout", "stderr"};
    struct json j = JSON(out);

    json_object(&j, NULL);
    json_int(&j, "v", 1);
    json_bool(&j, "success", false);
    for (size_t i = 0; i < 2; i++)
        json_null(&j, nulls[i]);
    json_text(&j, "ended", "sandbox");
    for (size_t i = 0; i < 3; i++)
        json_null(&j, more[i]);
    json_object(&j, "error");
    json_text(&j, "kind", kinds[error->kind]);
    json_text(&j, "text", error->text);
    json_object_end(&j);
    json_object_end(&j);
}

int report_failure(const struct ask *a, int result_fd, const struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_FAILURE_JSON);
    complain("%s", error->text);
    if (a->json || result_fd >= 0)
        failure_json(error, &out);
    if (a->json)
        (void)write_line(1, buf_cstr(&out));
    if (result_fd >= 0)
        (void)write_line(result_fd, buf_cstr(&out));
    return STATUS_SANDBOX;
}

int report_result(const struct ask *a, int result_fd, struct pinfold_result *result)
{
    int status = pinfold_result_status(result);
    int again = pinfold_result_reraise(result);
    bool told = true;

    if (a->json)
        told = write_line(1, pinfold_result_json(result));
    if (result_fd >= 0)
        told = write_line(result_fd, pinfold_result_json(result)) && told;
    pinfold_result_free(result);
    if (again) { /* so that a shell's loop around us stops as it would around the bare command */
        (void)signal(again, SIG_DFL);
        (void)raise(again);
    }
    return told ? status : STATUS_SANDBOX;
}
