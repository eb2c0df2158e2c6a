/*
 * A plan for a box in a box (plan/around.c): an outer plan's image is what its guard tells, and each inner plan either asks for
 * nothing that those rules do not say, or the error names the first that nobody would enforce.
 */
#include "unit.h"

#include "plan/make.h"
#include "test_plan_host.h"

#define HOST                                                                                                           \
    "dir /home/u/proj/sub\ndir /home/u/other\nfile /home/u/proj/f\nfile /home/u/proj/kept\nother /home/u/proj/s\n"     \
    "dir /tmp/w\nname .envrc root\nname .pinfold root dir\nname .git/hooks any dir\n"

static const struct row {
    const char *name, *outer, *inner, *top, *lacks; /* lacks: what the error says; NULL: there is none */
} rows[] = {
    {"the same", "", "", NULL, NULL},
    {"fewer names guarded outside", "guard off\n", "", NULL, "--guard off"},
    {"existing names only outside", "guard existing\n", "", NULL, "--guard existing"},
    {"existing names only in both", "guard existing\n", "guard existing\n", NULL, NULL},
    {"no guard asked for", "guard off\n", "guard off\n", NULL, NULL},
    {"a name more", "", "name .odd any\n", NULL, "does not guard the name .odd"},
    {"the same name, as a directory", "name .odd any\n", "name .odd any dir\n", NULL, "the name .odd"},
    {"a name less", "name .odd any\n", "", NULL, NULL},
    {"a subdirectory", "", "workspace /home/u/proj/sub\n", NULL, "--workspace /home/u/proj"},
    {"a subdirectory whose top is guarded", "", "workspace /home/u/proj/sub\n", "/home/u/proj/sub", NULL},
    {"another top", "", "workspace /home/u/proj/sub\n", "/home/u/proj/su", "--workspace /home/u/proj"},
    {"a subdirectory and a protected file in it", "", "workspace /home/u/proj/sub\nprotect /home/u/proj/sub/x\n",
     "/home/u/proj/sub", "does not protect /home/u/proj/sub/x"},
    {"a protected directory of the list at that top", "",
     "workspace /home/u/proj/sub\nprotect /home/u/proj/sub/.pinfold\n", "/home/u/proj/sub", NULL},
    {"the same where names are not strict", "guard existing\n",
     "guard existing\nworkspace /home/u/proj/sub\nprotect /home/u/proj/sub/.pinfold\n", "/home/u/proj/sub",
     "does not protect"},
    {"in a private tree", "", "workspace /tmp/w\n", NULL, "private tree of the box around"},
    {"read-only outside", "", "rw /home/u/other\n", NULL, NULL},
    {"protected in both", "protect /home/u/proj/kept\n", "protect /home/u/proj/kept\n", NULL, NULL},
    {"protected inside only", "", "protect /home/u/proj/kept\n", NULL, "does not protect /home/u/proj/kept"},
    {"its neighbour is protected", "protect /home/u/proj/kep\n", "protect /home/u/proj/kept\n", NULL, "not protect"},
    {"all of it is protected", "protect /home/u/proj/sub\n", "protect /home/u/proj/sub/in/it\n", NULL, NULL},
    {"but a part of it is writable", "protect /home/u/proj/sub\nrw /home/u/proj/sub/in\ndir /home/u/proj/sub/in\n",
     "protect /home/u/proj/sub/in/it\n", NULL, "not protect"},
    {"or a part below", "protect /home/u/proj/sub\nrw /home/u/proj/sub/in\ndir /home/u/proj/sub/in\n",
     "protect /home/u/proj/sub\n", NULL, "not protect"},
    {"in other letters", "protect /home/u/proj/KEPT\n", "protect /home/u/proj/kept\n", NULL, "not protect"},
    {"protected where nothing is writable", "", "rw /home/u/other\nprotect /home/u/other/x\n", NULL, NULL},
    {"hidden in both", "hide /home/u/proj/f\n", "hide /home/u/proj/f\n", NULL, NULL},
    {"hidden inside only", "", "hide /home/u/proj/f\n", NULL, "does not hide it"},
    {"only protected outside", "protect /home/u/proj/f\n", "hide /home/u/proj/f\n", NULL, "does not hide it"},
    {"but a part of it can be read", "hide /home/u/proj/sub\nro /home/u/proj/sub/in\ndir /home/u/proj/sub/in\n",
     "hide /home/u/proj/sub\n", NULL, "does not hide it"},
    {"or what is below that", "hide /home/u/proj/sub\nro /home/u/proj/sub/in\ndir /home/u/proj/sub/in\n",
     "hide /home/u/proj/sub/in/it\n", NULL, "does not hide it"},
    {"hidden where nothing is writable", "", "hide /home/u/other\n", NULL, NULL},
    {"a hidden name in both", "hide **/*.key\n", "hide **/*.key\n", NULL, NULL},
    {"a hidden name inside only", "", "hide **/*.key\n", NULL, "does not hide the name *.key"},
    {"a hidden name in less outside", "hide **/*.key below=/home/u/proj/sub\n", "hide **/*.key\n", NULL, "*.key"},
    {"a hidden name in more outside", "hide **/*.key\n", "hide **/*.key below=/home/u/proj/sub\n", NULL, NULL},
    {"a hidden name, and a private tree that only the outer box has", "hide **/*.key\ncache /home/u/.cache\n",
     "hide **/*.key\n", NULL, "*.key"},
    {"a hidden name, and a private tree in both", "hide **/*.key\ncache /home/u/.cache\n",
     "hide **/*.key\ncache /home/u/.cache\n", NULL, NULL},
    {"a socket outside only", "socket /home/u/proj/s\n", "", NULL, "may connect to /home/u/proj/s"},
    {"a socket in both", "socket /home/u/proj/s\n", "socket /home/u/proj/s\n", NULL, NULL},
    {"a socket inside only", "", "socket /home/u/proj/s\n", NULL, NULL},
    {"branches that hooks judge", "verify\n", "verify main\n", NULL, NULL},
    {"all branches, of which one is judged outside", "verify main\n", "verify\n", NULL,
     "have hooks judge commits for *"},
    {"branches that are not judged outside", "", "verify\n", NULL, "have hooks judge commits for *"},
    {"branches judged outside alone", "verify\n", "", NULL, NULL},
    {"a writable tree elsewhere", "", "mount /home/u/proj/sub /mnt\ndir /mnt\n", NULL, "shows a writable tree at /mnt"},
    {"a read-only tree elsewhere", "", "mount /home/u/proj/sub /mnt ro\ndir /mnt\n", NULL, NULL},
    /* Without namespaces the outer guard performs this box's calls as its own. */
    {"by Landlock, the same", "", "tier landlock\n", NULL, NULL},
    {"by Landlock, less is writable", "", "tier landlock\nworkspace /home/u/proj/sub\n", "/home/u/proj/sub",
     "file-confinement: the box around this one can write /home/u/proj, and inside it nothing takes that away; use all "
     "of it: --workspace /home/u/proj"},
    {"by Landlock, nothing is writable", "", "tier landlock\nworkspace /home/u/proj ro\n", NULL, "--rw /home/u/proj"},
    {"by Landlock, a part is read-only", "", "tier landlock\nro /home/u/proj/sub\n", NULL,
     "does not protect /home/u/proj/sub"},
    {"by Landlock, another tree is writable outside", "rw /home/u/other\n", "tier landlock\n", NULL,
     "allow it here as well: --rw /home/u/other"},
    {"by Landlock, another tree is writable inside", "", "tier landlock\nrw /home/u/other\n", NULL, NULL},
    {"by Landlock, it is hidden inside", "rw /home/u/other\n", "tier landlock\nhide /home/u/other\n", NULL,
     "--rw /home/u/other"},
    {"by Landlock, a cache in both", "cache /home/u/.cache\n", "tier landlock\ncache /home/u/.cache\n", NULL, NULL},
    {"by Landlock, a cache outside only", "cache /home/u/.cache\n", "tier landlock\n", NULL,
     "the box around this one can write /home/u/.cache"},
    {"by Landlock, storage outside only", "session\nstorage /home/u/kept\n", "tier landlock\n", NULL,
     "can write /home/u/kept"},
    {"by Landlock, hidden inside", "", "tier landlock\nhide /home/u/other\n", NULL,
     "opens files itself, and does not hide /home/u/"},
    {"by Landlock, hidden in both", "", "tier landlock\ndir /home/u/masked masked\nhide /home/u/masked\n", NULL, NULL},
    {"by Landlock, hidden where the outer guard opens", "hide **/*.key\n",
     "tier landlock\nhide **/*.key\nhide /home/u/other\n", NULL, "opens files itself, and does not hide /home/u/"},
    {"by a Landlock without scopes", "", "tier landlock\nlandlock 3\ncannot signals\ncannot abstract-sockets\n", NULL,
     NULL},
    {"by one, in a box without namespaces", "tier landlock\nmay_lose signals\n",
     "tier landlock\nlandlock 3\ncannot signals\ncannot abstract-sockets\n", NULL,
     "signals: the box around this one has no"},
    {"by one that cannot truncate", "",
     "tier landlock\nlandlock 2\ncannot signals\ncannot abstract-sockets\ncannot file-confinement\ncannot hides\ndir "
     "/home/u/masked masked\nhide /home/u/masked\n",
     NULL, NULL},
    {"without any", "", "tier landlock\nlandlock 0\ncannot file-confinement\ncannot hides\nhide /home/u/other\n", NULL,
     "hides: "},
};

static struct plan *plan_of(struct host *h, const char *text, const struct plan_image *around, const char *top,
                            struct err *e)
{
    struct plan *p = NULL;
    char all[2000];
    host_begin(h);
    snprintf(all, sizeof all, HOST "%s%s", text, around ? "no notify\nno overlay\n" : "nested\n");
    if (!host_read(h, all))
        fail_msg("%s", h->error);
    h->facts.around = around;
    h->facts.around_top = top;
    return plan_make(&h->policy, &h->facts, &h->ask, &p, e) < 0 ? NULL : p;
}

static void rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct host outer_host, inner_host;
        struct err e = {0};
        struct plan *outer = plan_of(&outer_host, rows[i].outer, NULL, NULL, &e);
        if (!outer)
            fail_msg("%s: the outer box: %s", rows[i].name, e.text);
        struct plan *inner = plan_of(&inner_host, rows[i].inner, outer->image, rows[i].top, &e);
        if (rows[i].lacks ? inner || !strstr(e.text, rows[i].lacks) : !inner)
            fail_msg("%s: %s", rows[i].name, inner ? "held" : e.text);
        if (inner && inner->image->filter & (FILTER_GUARD | FILTER_READS))
            fail_msg("%s: it wants a supervisor of its own", rows[i].name);
        plan_free(inner);
        plan_free(outer);
        host_end(&inner_host);
        host_end(&outer_host);
    }
}

/* Without the rules of a guard nothing is taken for granted. */
static void nobody(void **state)
{
    (void)state;
    struct host h;
    struct err e = {0};
    char text[] = "no notify\n";
    assert_null(plan_of(&h, text, NULL, NULL, &e));
    assert_non_null(strstr(e.text, "guard, unix-sockets: "));
    host_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules), cmocka_unit_test(nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
