/*
 * All messages between libpinfold and `pinfold --serve`. These tables define the structs that both ends use, the order of
 * the fields on the wire, the request numbers and the functions that serve them, so the two ends cannot disagree.
 *
 * A request is its number and its fields. The answer is an outcome and, on success, its fields. Before the answer the
 * server may send messages, questions and output (struct message_said and below).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "run/message.h"
#include "pinfold.h"

/* ---- what a message holds: F(kind, name) ---- */

/* clang-format off */
#define FIELDS_NOTHING(F)     F(NUMBER, none)
#define FIELDS_POLICY(F)      F(BYTES, policy)             /* as packed by the server */
#define FIELDS_SESSION(F)     F(TEXT, name) F(TEXT, scope) /* scope NULL: the user's own */
#define FIELDS_DESCRIPTORS(F) F(NUMBER, fds)               /* a bit for each of 0, 1, 2 that was passed */

#define FIELDS_load(F)                                                                                                 \
    F(TEXT, profile)                                                                                                   \
    F(LIST, files)                                                                                                     \
    F(TEXT, settings)                                                                                                  \
    F(TEXT, settings_format)                                                                                           \
    F(TEXT, text) F(TEXT, settings_text) F(TEXT, cwd) F(NUMBER, no_layers) F(OPTIONS, options) F(OPTIONS, wishes)
#define FIELDS_print(F)   FIELDS_POLICY(F) F(NUMBER, how)
#define FIELDS_explain(F) FIELDS_POLICY(F) F(NUMBER, format) F(NUMBER, show_values)
#define FIELDS_why(F)     FIELDS_POLICY(F) F(TEXT, action) F(TEXT, target)
#define FIELDS_run(F)                                                                                                  \
    FIELDS_POLICY(F)                                                                                                   \
    F(LIST, argv)                                                                                                      \
    F(LIST, env)                                                                                                       \
    F(TEXT, cwd)                                                                                                       \
    FIELDS_DESCRIPTORS(F)                                                                                              \
    F(NUMBER, capture) F(NUMBER, capture_max) F(NUMBER, say) F(NUMBER, ask) F(NUMBER, output) F(NUMBER, control)            \
    F(TEXT, cow) F(TEXT, cow_from) F(TEXT, id) F(NUMBER, guess_all) F(NUMBER, ask_writes) F(TEXT, events)                   \
    F(NUMBER, denied)
#define FIELDS_wrap(F)   FIELDS_POLICY(F) F(LIST, argv)
#define FIELDS_doctor(F) F(NUMBER, format) F(NUMBER, verify)
#define FIELDS_schema(F) FIELDS_NOTHING(F)
#define FIELDS_trust(F)  F(TEXT, path) F(NUMBER, withdraw)
#define FIELDS_log(F)    F(NUMBER, follow) F(TEXT, session) F(TEXT, since) F(NUMBER, verify) F(NUMBER, head) F(TEXT, head_was)
#define FIELDS_judge(F)  F(TEXT, what) F(TEXT, path)
#define FIELDS_ensure(F) FIELDS_POLICY(F) FIELDS_SESSION(F) F(NUMBER, recreate) F(TEXT, cow) F(TEXT, cow_from) F(TEXT, cwd)
#define FIELDS_open(F)   FIELDS_SESSION(F)
#define FIELDS_stop(F)   FIELDS_SESSION(F) F(NUMBER, remove)
#define FIELDS_list(F)   FIELDS_SESSION(F) F(NUMBER, some) /* 0: there were no options */
#define FIELDS_prune(F)  F(NUMBER, look)
#define FIELDS_sweep(F)  F(NUMBER, older) F(NUMBER, look)
#define FIELDS_layer(F) F(TEXT, layer) F(TEXT, cwd) F(LIST, paths) F(NUMBER, all) F(NUMBER, number) F(TEXT, to) F(LIST, choices) F(NUMBER, chosen) F(TEXT, branch) F(NUMBER, merge)
#define FIELDS_exec(F)                                                                                                 \
    FIELDS_SESSION(F)                                                                                                  \
    F(LIST, argv)                                                                                                      \
    F(LIST, env)                                                                                                       \
    F(TEXT, cwd)                                                                                                       \
    F(TEXT, shell) FIELDS_DESCRIPTORS(F) F(NUMBER, capture) F(NUMBER, capture_max) F(NUMBER, timeout_ms)               \
        F(NUMBER, tty) F(NUMBER, memory_max) F(NUMBER, processes_max) F(NUMBER, output) F(NUMBER, cancel)              \
            F(NUMBER, own_timeout) F(NUMBER, own_grace) F(NUMBER, own_output) F(TEXT, id)
#define FIELDS_update(F)     FIELDS_SESSION(F) F(LIST, allow) F(LIST, deny)
#define FIELDS_job_output(F) FIELDS_SESSION(F) F(NUMBER, job) F(NUMBER, at) F(NUMBER, room)
#define FIELDS_job_kill(F)   FIELDS_SESSION(F) F(NUMBER, job) F(NUMBER, signal)
#define FIELDS_agent(F)                                                                                                \
    F(TEXT, agent)                                                                                                     \
    F(TEXT, state)                                                                                                     \
    F(TEXT, home)                                                                                                      \
    F(TEXT, directory)                                                                                                 \
    F(TEXT, prompt) F(TEXT, profile) F(TEXT, model) F(TEXT, response) F(NUMBER, resume) F(NUMBER, unattended)
/* Answers. */
#define FIELDS_nothing(F) FIELDS_NOTHING(F)
#define FIELDS_policy(F)  FIELDS_POLICY(F)
#define FIELDS_text(F)    F(BYTES, text)
#define FIELDS_report(F)  F(BYTES, value) /* base/value.h */
#define FIELDS_words(F)   F(LIST, words)
#define FIELDS_result(F)                                                                                               \
    F(NUMBER, end) F(NUMBER, code) F(NUMBER, status) F(BYTES, out) F(BYTES, err) F(BYTES, value) F(TEXT, note)
#define FIELDS_limits(F)   F(NUMBER, timeout) F(NUMBER, grace) F(NUMBER, output)
#define FIELDS_job(F)      F(NUMBER, job)
#define FIELDS_written(F)  F(BYTES, bytes) F(NUMBER, first) F(NUMBER, ended)
#define FIELDS_prepared(F) F(OPTIONS, options) F(TEXT, json)
/* The beginning of every answer, and what may precede it. */
#define FIELDS_outcome(F)  F(NUMBER, returned) F(NUMBER, kind) F(NUMBER, no) F(TEXT, text)
#define FIELDS_said(F)     F(NUMBER, what) F(TEXT, sentence)
#define FIELDS_question(F) F(TEXT, target) F(TEXT, how) F(TEXT, command) F(NUMBER, pid) F(NUMBER, timeout_ms)
#define FIELDS_refusal(F)                                                                                              \
    F(TEXT, kind) F(TEXT, action) F(TEXT, target) F(TEXT, rule) F(TEXT, origin) F(TEXT, how) F(TEXT, command)          \
        F(TEXT, address) F(TEXT, why) F(NUMBER, pid) F(TEXT, command_line) F(TEXT, host) F(TEXT, remedy)               \
            F(TEXT, error) F(NUMBER, count) F(NUMBER, monitor) F(NUMBER, guess)
#define FIELDS_reply(F)    F(NUMBER, answer)
#define FIELDS_output(F)   F(NUMBER, which) F(BYTES, bytes)

#define MESSAGE_SHAPES(S)                                                                                              \
    S(load)                                                                                                            \
    S(print)                                                                                                           \
    S(explain)                                                                                                         \
    S(why)                                                                                                             \
    S(run)                                                                                                             \
    S(wrap) S(doctor) S(schema) S(trust) S(log) S(judge) S(ensure) S(open) S(stop) S(list) S(prune) S(sweep) S(layer) S(exec) S(update) \
        S(job_output) S(job_kill) S(agent) S(nothing) S(policy) S(text) S(report) S(words) S(result) S(limits) S(job)  \
            S(written) S(prepared) S(outcome) S(said) S(refusal) S(question) S(reply) S(output)

/* ---- requests: R(name, fields of the request, fields of the answer) ---- */

#define MESSAGE_REQUESTS(R)                                                                                            \
    R(load, load, policy)                                                                                              \
    R(print, print, text)                                                                                              \
    R(explain, explain, text)                                                                                          \
    R(explain_report, explain, report)                                                                                 \
    R(why, why, report)                                                                                                \
    R(explain_refused, explain, text)                                                                                  \
    R(run, run, result)                                                                                                \
    R(wrap, wrap, words)                                                                                               \
    R(doctor, doctor, text)                                                                                            \
    R(doctor_report, doctor, report)                                                                                   \
    R(schema, schema, text)                                                                                            \
    R(trust, trust, text)                                                                                              \
    R(log, log, nothing)                                                                                               \
    R(names, schema, report)                                                                                           \
    R(judge, judge, text)                                                                                              \
    R(ensure, ensure, limits)                                                                                          \
    R(open, open, nothing)                                                                                             \
    R(stop, stop, nothing)                                                                                             \
    R(list, list, report)                                                                                              \
    R(layer_diff, layer, report)                                                                                       \
    R(layer_patch, layer, report)                                                                                      \
    R(layer_hunks, layer, report)                                                                                      \
    R(layer_apply, layer, report)                                                                                      \
    R(layer_undo, layer, report)                                                                                       \
    R(layer_discard, layer, report)                                                                                    \
    R(layers, schema, report)                                                                                           \
    R(layers_prune, sweep, report)                                                                                     \
    R(prune, prune, report)                                                                                            \
    R(exec, exec, result)                                                                                              \
    R(job_start, exec, job)                                                                                            \
    R(job_list, open, report)                                                                                          \
    R(job_output, job_output, written)                                                                                 \
    R(job_kill, job_kill, nothing)                                                                                     \
    R(update, update, nothing)                                                                                         \
    R(files, open, nothing)                                                                                            \
    R(agent_list, schema, report)                                                                                      \
    R(agent_prepare, agent, prepared)                                                                                  \
    R(agent_argv, agent, words)

/* clang-format on */

/* ---- what the tables expand to ---- */

enum message_kind { MESSAGE_TEXT, MESSAGE_LIST, MESSAGE_NUMBER, MESSAGE_BYTES, MESSAGE_OPTIONS };
typedef const char *message_text_field;
typedef const char *const *message_list_field;
typedef uint64_t message_number_field;
typedef struct str message_bytes_field;
typedef const struct pinfold_option *message_options_field; /* ended by a NULL name; NULL: none */

#define MESSAGE_TYPE_TEXT    message_text_field
#define MESSAGE_TYPE_LIST    message_list_field
#define MESSAGE_TYPE_NUMBER  message_number_field
#define MESSAGE_TYPE_BYTES   message_bytes_field
#define MESSAGE_TYPE_OPTIONS message_options_field

#define MESSAGE_MEMBER(kind, name) MESSAGE_TYPE_##kind name;
#define MESSAGE_STRUCT(shape)                                                                                          \
    struct message_##shape {                                                                                           \
        FIELDS_##shape(MESSAGE_MEMBER)                                                                                 \
    };
MESSAGE_SHAPES(MESSAGE_STRUCT)

struct message_field {
    enum message_kind kind;
    const char *name;
};
struct message_shape {
    const char *name;
    const struct message_field *fields;
    size_t n, bytes;
};
enum message_shape_id {
#define MESSAGE_SHAPE_ID(shape) SHAPE_##shape,
    MESSAGE_SHAPES(MESSAGE_SHAPE_ID) SHAPE_COUNT
};
extern const struct message_shape message_shapes[SHAPE_COUNT];

enum message_op {
#define MESSAGE_OP(name, request, answer) REQUEST_##name,
    MESSAGE_REQUESTS(MESSAGE_OP) REQUEST_COUNT
};
struct message_request {
    const char *name;
    enum message_shape_id request, answer;
};
extern const struct message_request message_requests[REQUEST_COUNT];

enum message_tag {
    TAG_REQUEST = 100,
    TAG_OUTCOME,
    TAG_ANSWER,
    TAG_SAID,
    TAG_QUESTION,
    TAG_REPLY,
    TAG_OUTPUT,
    TAG_REFUSAL
};

/* The offset of a field of this kind that follows `*at` bytes of other fields; moves `*at` past it. */
size_t message_next(enum message_kind kind, size_t *at);
/* Appends the fields of `from`, a struct of that shape, to `b`. */
void message_put(struct buf *b, enum message_tag tag, enum message_shape_id shape, const void *from);
/* Reads the fields from `rest` into `ret`: texts and lists are copied to `mem`, bytes point into `rest`. 0, or -EBADMSG with
   `ret` zeroed. */
int message_take(struct str *rest, enum message_tag tag, enum message_shape_id shape, struct arena *mem, void *ret);
