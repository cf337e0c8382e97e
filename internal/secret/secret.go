// Package secret finds the secret texts of a configuration and of an environment, and removes them from output.
package secret

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"baton/internal/config"
)

const (
	// LeastPassword and leastSecret are the least lengths of a secret: at the place of a password, as in a URL, and elsewhere. Shorter
	// texts would blot out half of a command's output.
	LeastPassword = 4
	leastSecret   = 8
	// leastPlain is the shortest text of one kind of character that looks like a token.
	leastPlain = 16
)

// InVariables are the values of variables that a command's output must not show. Nearly all variables of the env_file belong to them.
func InVariables(set, file map[string]string) []string {
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := set[name]
		if from, ok := file[name]; ok && from == value && len(value) >= leastSecret {
			secrets = append(secrets, value)
		}
		secrets = append(secrets, InVariable(name, value)...)
	}
	return secrets
}

// InVariable is the secret part of a variable's value, by its name and its form: all of a PASSWORD; of a KEY or a URL the part that looks
// like a token, so that counts, paths and hosts stay readable.
func InVariable(name, value string) []string {
	secrets := passwordsIn(value)
	switch {
	case pathValue.MatchString(value) && (fileName.MatchString(name) || !config.HoldsSecret(name)):
	case config.HoldsSecret(name):
		if len(value) >= leastSecret {
			secrets = append(secrets, value)
		}
	case config.IsSecretName(name):
		between := " \t\r\n"
		if _, rest, isURL := strings.Cut(value, "://"); isURL { // the host is no secret
			value, between = rest[strings.IndexAny(rest+"/", "/?#"):], "/?&=#:@;, "
		}
		for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(between, r) }) {
			if looksLikeToken(part) {
				secrets = append(secrets, part)
			}
		}
	}
	return secrets
}

var (
	// pathValue is a value that names a file. In base64, too, there are slashes, but + and = as well.
	pathValue = regexp.MustCompile(`^(?:~|\.{1,2})?/[\w./@%:,-]*$`)
	// fileName is the form of a variable's name whose value is the path of a secret: TOKEN_FILE.
	fileName = regexp.MustCompile(`(?i)[_-](?:file|path|dir)$`)
)

// looksLikeToken distinguishes machine-made texts from words, numbers and prefixes of keys.
func looksLikeToken(text string) bool {
	var digit, letter, other bool
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digit = true
		case unicode.IsLetter(r):
			letter = true
		default:
			other = true
		}
	}
	return len(text) >= leastSecret && digit && letter || len(text) >= leastPlain && !other
}

// leastPiece is the shortest piece of a password that is hidden. Shorter ones are everyday words.
const leastPiece = 6

// pieces are a password's pieces, as a reader of URLs and DSNs may cut it.
func pieces(password string) []string {
	all := strings.FieldsFunc(password, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`@:/\?#&=;,()[]'"`, r) })
	return slices.DeleteFunc(all, func(p string) bool { return len(p) < leastPiece || p == password })
}

// InDSN are the passwords of a DSN and their pieces. A word that also occurs elsewhere in the DSN is not among them: a user's name is
// shown.
func InDSN(dsn string) []string {
	return slices.DeleteFunc(passwordsIn(dsn), func(p string) bool { return strings.Count(dsn, p) > 1 && !strings.Contains(p, "@") })
}

// Hide is text with *** for each of the secrets.
func Hide(text string, secrets []string) string {
	var out strings.Builder
	NewRedactor(secrets).Pass([]byte(text), true, func(b []byte) { out.Write(b) })
	return out.String()
}

// passwordsIn finds the passwords in a URL or in another DSN and their pieces, without those that are too short to
// redact.
func passwordsIn(value string) []string {
	var all []string
	for _, p := range config.PasswordsIn(value) {
		for _, found := range append([]string{p}, pieces(p)...) {
			if len(found) >= LeastPassword && !slices.Contains(all, found) {
				all = append(all, found)
			}
		}
	}
	return all
}

// Known are the secrets of the configuration and of the files that it names: a command may have obtained them in ways of its own.
func Known(c config.Config) []string {
	var all []string
	add := func(text string, least int) {
		if len(text) >= least {
			all = append(all, text)
		}
		all = append(all, passwordsIn(text)...)
	}
	for key, secret := range Inline(c) {
		if strings.HasPrefix(key, "env.") {
			continue // below, by name
		}
		least := leastSecret // a hook's path may be a common word
		if strings.HasPrefix(key, "redis.") {
			least = LeastPassword
		}
		add(secret, least)
		if strings.HasSuffix(key, "password") || strings.HasSuffix(key, "url") || strings.HasPrefix(key, "redis.quorum") {
			all = append(all, pieces(secret)...)
		}
	}
	variables := map[string]string{}
	for _, j := range c.Jobs {
		for name, value := range j.Env {
			all = append(all, InVariable(name, value)...)
		}
		if j.EnvFile != "" {
			_ = ReadEnvFile(j.EnvFile, variables) // the job that needs it reports the error
		}
	}
	for _, value := range variables {
		add(value, leastSecret)
	}
	for _, path := range Files(c) {
		if slices.ContainsFunc(c.Jobs, func(j config.Job) bool { return j.EnvFile == path }) {
			continue
		}
		text, err := ReadBounded(path)
		if err != nil {
			continue // its user reports the error
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				add(line, leastSecret)
			}
		}
	}
	return all
}
