/*
 * Settings files of agents, as far as they say which MCP servers are started: JSON ("mcpServers", comments allowed) and TOML
 * ("mcp_servers"). Texts are replaced where they stand; all else, comments and order, stays to the byte. Pure: bytes that strangers wrote.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

enum config_format { CONFIG_JSON, CONFIG_TOML };

/*
 * Called for every text below a server's entry: `place` is where it stands there ("args[1]", "env.PATH"). True: `to` holds what it
 * shall be.
 */
typedef bool config_text_fn(void *ctx, const char *server, const char *place, const char *text, struct buf *to);

struct config_walk {
    config_text_fn *text;
    void *ctx;
};

/* The file with what was replaced in `out`, the number of replacements; or -EBADMSG with what is wrong, in `why`. */
int config_servers(enum config_format format, struct str file, const struct config_walk *walk, struct buf *out,
                   char *why, size_t room);
