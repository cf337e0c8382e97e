package program

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/command/held"
	"baton/internal/job"
	"baton/internal/secret"
)

// keptBack lists the variables of the daemon that a command does not get. A name that ends in _ is a prefix.
var keptBack = []string{
	// With these variables a command could report to systemd that the daemon is ready or alive.
	"NOTIFY_SOCKET", "WATCHDOG_",
	// These variables describe descriptors and a process that the command does not have.
	"LISTEN_", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID",
	// These variables describe the trace of the program that started the daemon, and this program is not the parent of a run. A command
	// must not get the daemon's settings for its own traces, and the headers in them are secret.
	"TRACEPARENT", "TRACESTATE", "BAGGAGE", "OTEL_",
	// This directory contains the daemon's own secrets. A job names the secrets that it needs.
	"CREDENTIALS_DIRECTORY",
	// These variables are settings of the daemon, and some of them contain passwords. The list kept has the exceptions.
	"BATON_",
}

// kept lists exceptions to keptBack. With these variables a command that calls baton uses the same Redis, and does not wait for a lock that
// a caller of this daemon holds.
var kept = []string{"BATON_CONFIG", held.Locks}

// environment returns the environment of a run's command, and the secrets in this environment. If several variables have the same name, the
// last one counts. The argument login contains the variables of the command's user.
func (c *Program) environment(r job.Run, login map[string]string) (env, secrets []string, err error) {
	set := map[string]string{}
	for _, e := range c.o.Environ {
		if name, value, ok := strings.Cut(e, "="); ok && !isKeptBack(name) {
			set[name] = value
		}
	}
	maps.Copy(set, login)
	file := map[string]string{}
	if c.config.EnvFile != "" {
		if err := secret.ReadEnvFile(c.config.EnvFile, file); err != nil {
			return nil, nil, err
		}
		maps.Copy(set, file)
	}
	maps.Copy(set, c.config.Env)
	secrets = secret.InVariables(set, file)
	if c.o.Known != nil {
		secrets = append(secrets, c.o.Known()...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.Secrets)) {
		value, err := secret.ReadFile(c.config.Secrets[name])
		if err != nil {
			return nil, nil, fmt.Errorf("secret %s: %w", name, err)
		}
		set[name], secrets = value, append(secrets, value)
	}
	c.identify(r, set)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env, secrets, nil
}

// identify gives the command the ids of the run and of the term. With these ids the command can fence its writes to other systems, and
// `baton lock` recognises that it already holds the lock.
func (c *Program) identify(r job.Run, set map[string]string) {
	epoch := strconv.FormatInt(r.Term.Epoch, 10)
	lock := held.Lock{Key: c.o.LockKey, Owner: r.Term.Owner, Epoch: r.Term.Epoch}
	maps.Copy(set, map[string]string{
		"BATON_NODE_ID": r.Term.NodeID, "BATON_LOCK_KEY": c.o.LockKey, "BATON_OWNER": r.Term.Owner, "BATON_EPOCH": epoch,
		"BATON_JOB": r.Job, "BATON_RUN_ID": r.ID, "BATON_TRIGGER": string(r.Trigger), "BATON_ATTEMPT": strconv.Itoa(max(r.Attempt, 1)),
		held.Locks: strings.TrimSpace(set[held.Locks] + " " + lock.String()),
	})
	if c.o.Traceparent != nil {
		if parent := c.o.Traceparent(r.ID); parent != "" {
			set["TRACEPARENT"] = parent
			delete(set, "TRACESTATE") // it belongs to another parent
		}
	}
	if !r.Slot.IsZero() {
		zone, err := time.LoadLocation(c.config.TimeZone)
		if err != nil {
			zone = time.UTC // cannot happen, because the configuration was checked
		}
		set["BATON_SLOT"] = r.Slot.In(zone).Format(time.RFC3339)
	}
}

func isKeptBack(name string) bool {
	return !slices.Contains(kept, name) && slices.ContainsFunc(keptBack, func(k string) bool {
		return name == k || strings.HasSuffix(k, "_") && strings.HasPrefix(name, k)
	})
}
