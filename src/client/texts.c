/*
 * The answers that are reports, as JSON text: the functions of pinfold.h that return one. They are made of those that
 * return a report, so that there is one of each.
 */
#include "run/report.h"

int pinfold_session_list(const struct pinfold_session_options *options, char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_session_list_report(options, &report, error);
    return report_text(r, report, ret, error);
}

int pinfold_session_prune(char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_session_prune_report(0, &report, error);
    return report_text(r, report, ret, error);
}

int pinfold_session_left(char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_session_prune_report(1, &report, error);
    return report_text(r, report, ret, error);
}

int pinfold_job_list(struct pinfold_session *session, char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_job_list_report(session, &report, error);
    return report_text(r, report, ret, error);
}

int pinfold_agent_list(char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_agent_list_report(&report, error);
    return report_text(r, report, ret, error);
}

int pinfold_file_list(struct pinfold_session *session, const char *path, char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_file_list_report(session, path, &report, error);
    return report_text(r, report, ret, error);
}

int pinfold_file_where(struct pinfold_session *session, const char *path, char **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_file_where_report(session, path, &report, error);
    return report_text(r, report, ret, error);
}
