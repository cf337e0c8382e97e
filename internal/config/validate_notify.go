package config

import (
	"fmt"
	"net/url"
	"slices"

	"baton/internal/notify/service"
	"baton/internal/text"
)

func (v *validator) notify() {
	seen := map[string]string{}
	for i, n := range v.Notify {
		at := fmt.Sprintf("notify[%d]", i)
		v.name(at+".name", n.Name, seen)
		v.topics(at, n)
		switch {
		case n.Webhook == nil && len(n.Command) == 0:
			v.fail(at, "needs webhook or command")
		case n.Webhook != nil && len(n.Command) > 0:
			v.fail(at+".command", "webhook is set, too; write two targets, one for each")
		case n.Webhook == nil:
			v.argv(at+".command", n.Command, false)
			v.program(at+".command", n.Command, false)
		}
		v.webhook(at+".webhook", n.Webhook)
		switch {
		case n.Format == "":
		case n.Webhook == nil:
			v.fail(at+".format", "only for webhook, because a command gets the event as JSON; remove it")
		default:
			v.choice(at+".format", n.Format, WebhookFormats()...)
			if f, _ := service.Find(n.Format); f.Secret == service.Nothing && n.Webhook.TokenFile != "" {
				v.fail(at+".webhook.token_file", "%s accepts no token, because its address is the secret; remove token_file", n.Format)
			}
		}
	}
}

// topics checks the events and jobs of a notification.
func (v *validator) topics(at string, n Notify) {
	for k, event := range n.On {
		v.choice(fmt.Sprintf("%s.on[%d]", at, k), event, NotifyEvents()...)
		if slices.Contains(n.On[:k], event) {
			v.fail(fmt.Sprintf("%s.on[%d]", at, k), "%q: write each event once", event)
		}
	}
	names := make([]string, len(v.Jobs))
	late, flushes := false, false
	for i, j := range v.Jobs {
		names[i] = j.Name
		concerned := len(n.Jobs) == 0 || slices.Contains(n.Jobs, j.Name)
		late = late || concerned && j.LateAfter > 0 && !j.always()
		flushes = flushes || concerned && !j.IsCommand()
	}
	for k, name := range n.Jobs {
		switch {
		case len(names) == 0:
			v.fail(fmt.Sprintf("%s.jobs[%d]", at, k), "there is no job %q, nor any other", name)
		case !slices.Contains(names, name):
			v.fail(fmt.Sprintf("%s.jobs[%d]", at, k), "there is no job %q; %s", name, suggest(name, names))
		case slices.Contains(n.Jobs[:k], name):
			v.fail(fmt.Sprintf("%s.jobs[%d]", at, k), "%q: write each job once", name)
		}
	}
	never := func(event, why string) {
		if k := slices.Index(n.On, event); k >= 0 && len(n.On) < len(NotifyEvents()) {
			v.fail(fmt.Sprintf("%s.on[%d]", at, k), "%s", why)
		}
	}
	if !late {
		never(NotifyLate, "no job has late_after, so no job is ever late; set it, or remove late")
	}
	if !flushes {
		never(NotifyDeadLetters, "no job is a flush, so there are no dead letters; remove dead_letters")
	}
	if n.GiveUpAfter > longest {
		v.fail(at+".give_up_after", "%s is more than a year", text.Exact(n.GiveUpAfter))
	} else if n.Timeout > n.GiveUpAfter {
		v.fail(at+".timeout", "%s is more than give_up_after, %s", text.Exact(n.Timeout), text.Exact(n.GiveUpAfter))
	}
}

// webhook checks a webhook. It never quotes the URL, because the URL may contain a secret.
func (v *validator) webhook(path string, w *Webhook) {
	if w == nil {
		return
	}
	v.absolute(path+".url_file", w.URLFile)
	v.absolute(path+".token_file", w.TokenFile)
	switch {
	case w.URL == "" && w.URLFile == "":
		v.fail(path, "needs url or url_file")
	case w.URL != "" && w.URLFile != "":
		v.fail(path+".url_file", "url is set too; keep one of them")
	case w.URL != "":
		if u, err := url.Parse(w.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			v.fail(path, "write a URL: https://host/path")
		} else if !text.IsHost(u.Hostname()) || u.Port() != "" && !validPort(u.Port()) {
			v.fail(path, "the host is not a valid name: %s", encodePassword)
		}
	}
}

// alone rejects a dead man's switch that another job also uses, because the successes of one job would hide that the other job has not
// succeeded.
func (v *validator) alone(path string, w *Webhook, seen map[Webhook]string) {
	if w == nil {
		return
	}
	if other, twice := seen[*w]; twice {
		v.fail(path, "the same address as that of %s, whose successes would hide that this job has none; give this job its "+
			"own address", other)
		return
	}
	seen[*w] = parent(path)
}

// bounds checks the numbers that concern all jobs.
func (v *validator) bounds() {
	if n := v.MaxConcurrentJobs; n < 0 {
		v.fail("max_concurrent_jobs", "%d: must be 1 or more; leave it out for any number", n)
	}
	if n := v.History.Keep; n < 0 || n > 10_000 {
		v.fail("history.keep", "%d: must be from 1 to 10000 entries of each job", n)
	}
	if d := v.History.MaxAge; d > 10*longest {
		v.fail("history.max_age", "%s is more than ten years", text.Exact(d))
	}
}
