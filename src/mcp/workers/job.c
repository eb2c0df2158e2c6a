/*
 * A call in its worker process: questions and progress to the server, and the result. Frames on a socket; the worker
 * can be killed at any point.
 */
#include "mcp/workers/job.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "mcp/protocol/mime.h"

#define MAX_LINE 4000

void words_of(struct buf *out, struct str text)
{
    utf8_safe(out, text);
}

void job_tell(const struct mcp_job *j, const char *sentence)
{
    auto_buf struct buf line = BUF(1u << 20);
    if (j->place->options->quiet)
        return;
    if (j->number)
        buf_printf(&line, "pinfold: [%u] %s: ", j->number, j->tool);
    else
        buf_printf(&line, "pinfold: %s: ", j->tool);
    words_of(&line, str_of(sentence));
    if (line.n > MAX_LINE)
        line.n = MAX_LINE;
    buf_char(&line, '\n');
    if (buf_ok(&line))
        (void)!write(2, line.p, line.n); /* one write: lines of several calls do not mix */
}

static int send_all(int socket, struct iovec *parts, size_t n)
{
    while (n) {
        struct msghdr m = {.msg_iov = parts, .msg_iovlen = n};
        ssize_t sent = sendmsg(socket, &m, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        while (n && (size_t)sent >= parts->iov_len) {
            sent -= (ssize_t)parts->iov_len;
            parts++;
            n--;
        }
        if (n) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

int frame_send(int socket, enum frame_type type, struct str bytes)
{
    struct job_frame head = {.type = type, .n = bytes.n};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)bytes.p, bytes.n}};
    return send_all(socket, parts, bytes.n ? 2 : 1);
}

int frame_receive(int socket, uint32_t *ret_type, struct buf *to)
{
    struct job_frame head;
    int r = fd_read_exactly(socket, &head, sizeof head);
    if (r < 0)
        return r;
    char *at = head.n > to->max ? NULL : buf_space(to, head.n);
    if (!at)
        return -ENOMEM;
    r = fd_read_exactly(socket, at, head.n);
    if (r < 0)
        return r;
    buf_grew(to, head.n);
    *ret_type = head.type;
    return 0;
}

void job_say(const struct mcp_job *j, enum say_level level, const char *sentence)
{
    auto_buf struct buf m = BUF(1u << 20);
    buf_char(&m, (char)level);
    words_of(&m, str_of(sentence));
    if (buf_ok(&m))
        (void)frame_send(j->socket, FRAME_SAY, buf_view(&m));
}

void job_denied(const struct mcp_job *j, struct str json)
{
    (void)frame_send(j->socket, FRAME_DENIED, json);
}

void job_progress(const struct mcp_job *j, const char *sentence)
{
    (void)frame_send(j->socket, FRAME_PROGRESS, str_of(sentence));
}

bool job_ask(const struct mcp_job *j, const char *question, uint32_t patience_ms)
{
    auto_buf struct buf answer = BUF(16), asked = BUF(1u << 21);
    uint32_t type = 0;

    buf_put(&asked, &patience_ms, sizeof patience_ms);
    buf_text(&asked, question);
    if (!j->can_ask || !buf_ok(&asked) || frame_send(j->socket, FRAME_QUESTION, buf_view(&asked)) < 0)
        return false;
    if (frame_receive(j->socket, &type, &answer) < 0)
        _exit(125); /* nobody is there any more */
    return type == FRAME_ANSWER && str_is(buf_view(&answer), "1");
}

void job_fail(struct mcp_job *j, const char *format, ...)
{
    va_list args;
    j->failed = j->words_alone = true;
    buf_free(&j->structured);
    buf_free(&j->text);
    va_start(args, format);
    buf_vprintf(&j->text, format, args);
    va_end(args);
}

void job_fault(struct mcp_job *j, int code, const char *format, ...)
{
    va_list args;
    j->fault = code;
    buf_free(&j->text);
    va_start(args, format);
    buf_vprintf(&j->text, format, args);
    va_end(args);
}

void job_bare(struct mcp_job *j, struct buf *json)
{
    if (!buf_ok(json)) {
        job_fault(j, -32603, "the result is too large to send");
        return;
    }
    j->bare = true;
    buf_free(&j->structured);
    j->structured = *json;
    *json = BUF(0);
}

void job_changed(const struct mcp_job *j)
{
    (void)frame_send(j->socket, FRAME_CHANGED, STR(""));
}

static int finish_fault(const struct mcp_job *j)
{
    auto_buf struct buf out = BUF(1u << 20);
    int32_t code = j->fault;
    buf_put(&out, &code, sizeof code);
    buf_put(&out, j->text.p, j->text.n < 4000 ? j->text.n : 4000);
    return frame_send(j->socket, FRAME_FAULT, buf_view(&out));
}

int job_finish(struct mcp_job *j)
{
    auto_buf struct buf out = BUF(MCP_MAX_ANSWER);
    struct json w = JSON(&out);

    if (j->fault)
        return finish_fault(j);
    if (j->bare)
        return frame_send(j->socket, FRAME_RESULT, buf_view(&j->structured));
    json_object(&w, NULL);
    json_array(&w, "content");
    json_object(&w, NULL);
    json_text(&w, "type", "text");
    json_str(&w, "text", buf_view(&j->text));
    json_object_end(&w);
    if (j->picture && !j->failed) {
        json_object(&w, NULL);
        json_text(&w, "type", mime_content(j->picture));
        json_base64(&w, "data", buf_view(&j->pixels));
        json_text(&w, "mimeType", j->picture);
        json_object_end(&w);
    }
    json_array_end(&w);
    if (j->structured.n && buf_ok(&j->structured) && !j->words_alone)
        json_raw(&w, "structuredContent", buf_view(&j->structured));
    json_bool(&w, "isError", j->failed);
    json_object_end(&w);
    if (!buf_ok(&out) || !buf_ok(&j->text)) {
        buf_free(&out);
        buf_text(&out,
                 "{\"content\":[{\"type\":\"text\",\"text\":\"the result is too large to send\"}],\"isError\":true}");
    }
    return frame_send(j->socket, FRAME_RESULT, buf_view(&out));
}
