package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// policy checks the defaults, or what a job has with their help. A problem of a value
// that the defaults have is told there alone.
func (v *validator) policy(path string, p Policy) {
	v.zone(v.whose(path, "time_zone"), p.TimeZone)
	v.choice(v.whose(path, "catch_up"), p.CatchUp, CatchUpLatest, CatchUpAll, CatchUpNone)
	v.choice(v.whose(path, "overlap"), p.Overlap, OverlapForbid, OverlapQueueOne, OverlapReplace, OverlapAllow)
	v.choice(v.whose(path, "on_lost"), p.OnLost, OnLostSkip, OnLostRerun)
	if r := p.Retry; r.Limit == 0 && (r.Delay > 0 || r.MaxDelay > 0) && path != "defaults" {
		v.fail(v.whose(path, "retry"), "there is a delay and no limit, so nothing is tried again; set limit, or remove it")
	} else if r.Limit < 0 || r.Limit > 1000 {
		v.fail(v.whose(path, "retry")+".limit", "%d: want 1 to 1000; leave it out to try nothing again", r.Limit)
	} else if r.MaxDelay > 0 && r.Delay > r.MaxDelay {
		v.fail(v.whose(path, "retry")+".delay", "%v is more than max_delay, %v", r.Delay, r.MaxDelay)
	}
	const longest = 366 * 24 * time.Hour
	for key, d := range map[string]time.Duration{"jitter": p.Jitter, "grace": p.Grace, "late_after": p.LateAfter} {
		if d > longest {
			v.fail(v.whose(path, key), "%v is more than a year", d)
		}
	}
}

// whose is where a value of a job's policy comes from: the job, or the defaults.
func (v *validator) whose(path, key string) string {
	own, common := path+"."+key, "defaults."+key
	if _, set := v.places[own]; set || path == "defaults" {
		return own
	}
	if _, set := v.places[common]; set {
		return common
	}
	return own
}

// work checks what the job does; false if there is no flush to check further.
func (v *validator) work(path string, j Job) (flushes bool) {
	flushes = !reflect.ValueOf(j.Flush).IsZero()
	switch {
	case flushes && j.IsCommand():
		v.fail(path+".command", "the job has a flush too; make two jobs of it")
		return false
	case !flushes && !j.IsCommand():
		if _, set := v.places[path+".command"]; set {
			v.fail(path+".command", "it is empty; want a program and its arguments: [/usr/bin/report, --yesterday]")
		} else {
			v.fail(path+".flush", "required, or command: what to flush, from where, and to which table, or what to run")
		}
		return false
	case flushes:
		v.onlyCommands(path, j)
		if j.Overlap == OverlapAllow {
			v.fail(v.whose(path, "overlap"), "a flush cannot run twice at a time; want forbid, queue_one or replace")
		}
		return true
	}
	v.command(path, j)
	return false
}

func (v *validator) onlyCommands(path string, j Job) {
	for key, set := range map[string]bool{
		"shell": j.Shell, "working_dir": j.WorkingDir != "", "env": len(j.Env) > 0, "env_file": j.EnvFile != "", "secrets": len(j.Secrets) > 0,
	} {
		if set {
			v.fail(path+"."+key, "only for a job with a command; remove it")
		}
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (v *validator) command(path string, j Job) {
	v.argv(path+".command", j.Command, j.Shell)
	if j.WorkingDir != "" && !strings.HasPrefix(j.WorkingDir, "/") {
		v.fail(path+".working_dir", "%q: want an absolute path", j.WorkingDir)
	}
	for key, names := range map[string]map[string]string{"env": j.Env, "secrets": j.Secrets} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			at := path + "." + key + "." + name
			_, twice := j.Env[name]
			switch {
			case !envName.MatchString(name):
				v.fail(at, "want a name of letters, digits and underscores")
			case strings.HasPrefix(name, "BATON_"):
				v.fail(at, "names that begin with BATON_ are baton's own: it sets them for the command")
			case strings.ContainsRune(names[name], 0):
				v.fail(at, "there is a NUL in it")
			case key == "secrets" && names[name] == "":
				v.fail(at, "want the file that holds the secret")
			case key == "secrets" && twice:
				v.fail(at, "it is under env too; keep one of them")
			}
		}
	}
}

// argv checks a command line.
func (v *validator) argv(path string, c Command, shell bool) {
	for i, arg := range c {
		if strings.ContainsRune(arg, 0) {
			v.fail(fmt.Sprintf("%s[%d]", path, i), "there is a NUL in it")
		}
	}
	switch {
	case c[0] == "":
		v.fail(path, "the program has no name")
	case shell && len(c) > 1:
		v.fail(path, "with shell: true it is one text for /bin/sh -c; for a list of arguments remove shell")
	case !shell && len(c) == 1 && strings.ContainsAny(c[0], " \t\n|;&<>$`"):
		v.fail(path, "it is one text with blanks or signs of the shell, and would be taken for the program's name; write a list, [program, argument], or add shell: true")
	}
}

func (v *validator) notify() {
	seen := map[string]string{}
	for i, n := range v.Notify {
		at := fmt.Sprintf("notify[%d]", i)
		v.name(at+".name", n.Name, seen)
		for k, event := range n.On {
			v.choice(fmt.Sprintf("%s.on[%d]", at, k), event, NotifyEvents()...)
		}
		for k, name := range n.Jobs {
			if !slices.ContainsFunc(v.Jobs, func(j Job) bool { return j.Name == name }) {
				v.fail(fmt.Sprintf("%s.jobs[%d]", at, k), "there is no job %q", name)
			}
		}
		switch {
		case n.Webhook == nil && len(n.Command) == 0:
			v.fail(at, "needs webhook or command: whom to tell")
		case n.Webhook != nil && len(n.Command) > 0:
			v.fail(at+".command", "webhook is set too; make two of it")
		case n.Webhook == nil:
			v.argv(at+".command", n.Command, false)
		}
		v.webhook(at+".webhook", n.Webhook)
	}
}

// webhook never quotes the URL: it may be a secret.
func (v *validator) webhook(path string, w *Webhook) {
	switch {
	case w == nil:
	case w.URL == "" && w.URLFile == "":
		v.fail(path, "needs url or url_file")
	case w.URL != "" && w.URLFile != "":
		v.fail(path+".url_file", "url is set too; keep one of them")
	case w.URL != "":
		if u, err := url.Parse(w.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			v.fail(path, "want a URL: https://host/path")
		}
	}
}
