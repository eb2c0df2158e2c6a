/*
 * Finds in the settings files of agents which MCP servers are started: JSON ("mcpServers", comments allowed) and TOML
 * ("mcp_servers"). Texts are replaced in place; everything else, comments and order included, stays unchanged. Pure;
 * the input is untrusted.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

enum config_format { CONFIG_JSON, CONFIG_TOML };

/*
 * Called for every text of a server's entry: `place` is its path in it ("args[1]", "env.PATH"). Returns true with the
 * replacement in `to`.
 */
typedef bool config_text_fn(void *ctx, const char *server, const char *place, const char *text, struct buf *to);

struct config_walk {
    config_text_fn *text;
    void *ctx;
};

/* Puts the edited file into `out` and returns the number of replacements; or -EBADMSG with the reason in `why`. */
int config_servers(enum config_format format, struct str file, const struct config_walk *walk, struct buf *out,
                   char *why, size_t room);
