package daemon

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"baton/internal/config"
)

const (
	// leastNamed and leastUnnamed are the shortest values of variables that are taken for
	// secrets: of those whose name says so, and of others in an env_file. What is shorter
	// would blot out half of what a command prints.
	leastNamed   = 4
	leastUnnamed = 8
)

// secretsIn are the values of variables that nobody is to see in what a command prints:
// of all that have a telling name, and of those of the env_file nearly all. Of a URL the
// password alone is one, too.
func secretsIn(set, file map[string]string) []string {
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := set[name]
		_, fromFile := file[name]
		switch {
		case config.IsSecretName(name) && len(value) >= leastNamed, fromFile && file[name] == value && len(value) >= leastUnnamed:
			secrets = append(secrets, value)
		}
		secrets = append(secrets, passwordsIn(value)...)
	}
	return secrets
}

// passwordsIn is the password of a URL, as it stands there and as it is meant.
func passwordsIn(value string) []string {
	if !strings.Contains(value, "://") {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	if len(password) < leastNamed {
		return nil
	}
	all := []string{password}
	_, raw, _ := strings.Cut(value, "://")
	raw, _, _ = strings.Cut(raw, "/")
	if at := strings.LastIndexByte(raw, '@'); at >= 0 {
		if _, written, ok := strings.Cut(raw[:at], ":"); ok && written != password {
			all = append(all, written)
		}
	}
	return all
}

// passwordOf finds the password in a DSN that is no URL: MySQL's, and PostgreSQL's words.
var passwordOf = regexp.MustCompile(`^[^:@/]*:(.*)@[a-z]*[(/]|(?:^|\s)password\s*=\s*'?([^'\s]+)`)

// knownSecrets are those of the configuration and of the files that it names: a command
// may have come by them in ways of its own.
func knownSecrets(c config.Config) []string {
	var all []string
	add := func(text string, least int) {
		if len(text) >= least {
			all = append(all, text)
		}
		all = append(all, passwordsIn(text)...)
		if m := passwordOf.FindStringSubmatch(text); m != nil {
			for _, password := range m[1:] {
				if len(password) >= leastNamed {
					all = append(all, password)
				}
			}
		}
	}
	for key, secret := range inlineSecrets(c) {
		least := leastUnnamed // a hook's path may be a plain word
		if strings.HasPrefix(key, "redis.") {
			least = leastNamed
		}
		add(secret, least)
	}
	variables := map[string]string{}
	for _, j := range c.Jobs {
		if j.EnvFile != "" {
			_ = readEnvFile(j.EnvFile, variables) // whoever needs it tells
		}
	}
	for _, value := range variables {
		add(value, leastUnnamed)
	}
	for _, path := range secretFiles(c) {
		if slices.ContainsFunc(c.Jobs, func(j config.Job) bool { return j.EnvFile == path }) {
			continue
		}
		text, err := readBounded(path)
		if err != nil {
			continue // whoever needs it tells
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				add(line, leastUnnamed)
			}
		}
	}
	return all
}
