/*
 * A virtual machine is the command of a box like any other, which decides what may be read, written and reached. It
 * gets its kernel from a directory of pinfold's state that only it sees, and KVM's device.
 */
#include "plan/make.h"
#include "protocol/vm.h"

int machine_begin(struct making *m)
{
    const struct machine_fact *f = m->facts->machine;
    if (!f)
        return 0;
    if (!m->facts->state_home)
        return err_say(m->e, ERR_CANNOT,
                       "vm stores its boot files in your state directory: set HOME or XDG_STATE_HOME");
    m->machine = path_join(m->mem, m->facts->state_home, "pinfold/vm");
    m->machine_slot = m->n_slots++;
    int r = m->machine ? add_make_dir(m, m->machine, false) : no_memory(m);
    if (r < 0 || !f->kvm)
        return r < 0 || !f->emulated ? r : note(m, "the machine is emulated, which is slow: %s", f->emulated);
    struct plan_place *p = place_add(m, PLACE_RW, "/dev/kvm", 0);
    if (!p)
        return no_memory(m);
    p->src = p->dst;
    p->parent = "/dev";
    p->type = p->dst_type = PATH_OTHER;
    p->said = true;
    p->why = "KVM";
    return 0;
}

int machine_source(struct making *m)
{
    struct step *s = m->machine ? image_path(&m->image, STEP_SOURCE, m->machine, 0) : NULL;
    if (s)
        s->b = m->machine_slot;
    return s || !m->machine ? 0 : no_memory(m);
}

int machine_steps(struct making *m)
{
    bool run = false;
    for (size_t i = 0; m->machine && i < m->n_places; i++)
        run |= m->places[i].kind == PLACE_TMPFS && m->places[i].act == ACT_PRIVATE &&
               strcmp(m->places[i].dst, "/run") == 0;
    if (!m->machine)
        return 0;
    if (!run)
        return err_say(m->e, ERR_CANNOT, "vm needs a private /run: remove the rule about /run");
    struct step *dir = image_path(&m->image, STEP_DIR, VM_FILES, 0);
    if (dir)
        dir->mode = 0755;
    struct step *s = dir ? image_path(&m->image, STEP_ATTACH, VM_FILES, 0) : NULL;
    if (!s)
        return no_memory(m);
    s->b = m->machine_slot;
    s->flags = STEP_RDONLY | STEP_NOSUID | STEP_NODEV | STEP_NOEXEC | STEP_RECURSE;
    return 0;
}

/* What does not work with a kernel of the machine's own. */
int machine_check(struct making *m)
{
    const struct policy *p = m->policy;
    if (!m->facts->machine)
        return 0;
    int r = p->net == NET_HOST ? note(m, "net host: the virtual machine uses this machine's network by TCP and UDP "
                                         "over IPv4; servers in it cannot be reached from outside")
                               : 0;
    if (r < 0)
        return r;
    if (p->n_unix_sockets)
        return err_say(
            m->e, ERR_CANNOT,
            "unix-sockets: '%s' (--unix-socket): a virtual machine cannot connect to a Unix socket of this machine "
            "(--engine vm); reach the service by TCP (--reach 127.0.0.1:PORT), or use another engine",
            p->unix_sockets[0]);
    for (size_t i = 0; i < p->n_net_rules; i++) {
        const struct net_rule *rule = &p->net_rules[i];
        if (rule->verb == NET_RULE_REACH && rule->text[0] == '[')
            return err_say(m->e, ERR_CANNOT,
                           "reach %s (%s): a virtual machine can reach 127.0.0.1 only, not [::1] (--engine vm); make "
                           "the service listen on 127.0.0.1",
                           rule->text, origin_of(m, rule->origin));
    }
    return 0;
}

/*
 * In a writable place the guard hides by judging every open, and qemu opens each directory on a path: so nothing below
 * such a hidden directory could be reached.
 */
int machine_check_hides(struct making *m)
{
    for (size_t i = 0; m->facts->machine && i < m->n_places; i++) {
        const struct plan_place *hidden = &m->places[i], *in = hidden;
        if (hidden->kind != PLACE_HIDE || hidden->act != ACT_GUARD || !hidden->opened)
            continue;
        for (size_t k = 0; k < m->n_places && in == hidden; k++) {
            const struct plan_place *p = &m->places[k];
            if ((p->kind == PLACE_RO || p->kind == PLACE_RW) && path_below(p->dst, hidden->dst))
                in = p;
        }
        return err_say(m->e, ERR_CANNOT,
                       "hide '%s' (%s): a virtual machine cannot show '%s' inside a hidden, writable path (--engine "
                       "vm); hide the paths beside it instead, or use another engine",
                       hidden->dst, origin_of(m, hidden->origin), in->dst);
    }
    return 0;
}

const char *machine_proxy(const struct making *m)
{
    return m->facts->machine ? "http://" VM_GATEWAY ":61080" : NULL;
}
