package daemon

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/job"
)

// keptBack are the variables of the daemon that a command does not get; those that
// end in _ are the beginnings of names.
var keptBack = []string{
	// With these a command could report the daemon as ready or alive to systemd.
	"NOTIFY_SOCKET", "WATCHDOG_",
	// They speak of descriptors and a process that are not the command's.
	"LISTEN_", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID",
	// The daemon's own secrets. A job names those that are its business.
	"CREDENTIALS_DIRECTORY",
	// The daemon's settings, with passwords in some. See kept for the rest.
	"BATON_",
}

// kept are exceptions: a command that calls baton talks to the same Redis, and does not
// wait for a lock that somebody around this daemon holds.
var kept = []string{"BATON_CONFIG", envLocks}

// readable bounds the files that a run reads.
const readable = 1 << 20

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment is what the command of a run gets, and what of it nobody is to see. Of
// variables with the same name the last one counts.
func (c *commandJob) environment(r job.Run) (env, secrets []string, err error) {
	set := map[string]string{}
	for _, e := range c.o.Environ {
		if name, value, ok := strings.Cut(e, "="); ok && !isKeptBack(name) {
			set[name] = value
		}
	}
	file := map[string]string{}
	if c.config.EnvFile != "" {
		if err := readEnvFile(c.config.EnvFile, file); err != nil {
			return nil, nil, err
		}
		maps.Copy(set, file)
	}
	maps.Copy(set, c.config.Env)
	secrets = secretsIn(set, file)
	if c.o.Known != nil {
		secrets = append(secrets, c.o.Known()...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.Secrets)) {
		value, err := readSecret(c.config.Secrets[name])
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

// identify tells the command which run it is, and under which term: enough to fence
// what it writes elsewhere, and for `baton lock` to know that it holds the lock.
func (c *commandJob) identify(r job.Run, set map[string]string) {
	epoch := strconv.FormatInt(r.Term.Epoch, 10)
	held := fmt.Sprintf("%s=%s:%s", url.QueryEscape(c.o.LockKey), r.Term.Owner, epoch)
	maps.Copy(set, map[string]string{
		"BATON_NODE_ID": r.Term.NodeID, "BATON_LOCK_KEY": c.o.LockKey, "BATON_OWNER": r.Term.Owner, "BATON_EPOCH": epoch,
		"BATON_JOB": r.Job, "BATON_RUN_ID": r.ID, "BATON_TRIGGER": string(r.Trigger), "BATON_ATTEMPT": strconv.Itoa(max(r.Attempt, 1)),
		envLocks: strings.TrimSpace(set[envLocks] + " " + held),
	})
	if !r.Slot.IsZero() {
		zone, err := time.LoadLocation(c.config.TimeZone)
		if err != nil {
			zone = time.UTC // the configuration is checked: it cannot be
		}
		set[envSlot] = r.Slot.In(zone).Format(time.RFC3339)
	}
}

func isKeptBack(name string) bool {
	return !slices.Contains(kept, name) && slices.ContainsFunc(keptBack, func(k string) bool {
		return name == k || strings.HasSuffix(k, "_") && strings.HasPrefix(name, k)
	})
}

// readEnvFile reads lines of NAME=VALUE into set. A value may be in quotes, which
// mean nothing else than where it begins and ends.
func readEnvFile(path string, set map[string]string) error {
	text, err := readBounded(path)
	if err != nil {
		return fmt.Errorf("env_file: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, readable+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		wrong := "" // the line itself may be a secret
		switch {
		case !ok:
			wrong = "want NAME=VALUE"
		case !variableName.MatchString(name):
			wrong = "a name has letters, digits and underscores only"
		case strings.HasPrefix(name, "BATON_"):
			wrong = "names that begin with BATON_ are baton's own"
		case strings.ContainsRune(value, 0):
			wrong = "there is a NUL in it"
		case value != "" && strings.ContainsRune(`"'`, rune(value[0])):
			if len(value) < 2 || value[len(value)-1] != value[0] {
				wrong = "the quote is not closed at the end of the line"
				break
			}
			value = value[1 : len(value)-1]
		}
		if wrong != "" {
			return fmt.Errorf("env_file %s, line %d: %s", path, n, wrong)
		}
		set[name] = value
	}
	return lines.Err()
}

// readSecret reads a file of one line.
func readSecret(path string) (string, error) {
	text, err := readBounded(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case value == "":
		return "", fmt.Errorf("file %s is empty", path)
	case strings.ContainsAny(value, "\n\x00"):
		return "", fmt.Errorf("file %s is not one line of text", path)
	}
	return value, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // one that is waited for would hold up the run
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > readable:
		return nil, errors.New(path + " has more than 1 MiB")
	}
	return os.ReadFile(path)
}
