package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	urlStart = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
	// mysqlPassword matches user:password@tcp(host)/database, and captures the password, which may contain any character.
	mysqlPassword = regexp.MustCompile(`^[^:@/]*:(.+)@[\w-]*[(/]`)
	// passwordSetting matches a password setting of libpq, of a URL's query or of an ODBC string, with or without quotes.
	passwordSetting = regexp.MustCompile(`(?i)(?:^|[\s;?&])(?:ssl)?(?:password|passwd|pwd)\s*=\s*` +
		`(?:'((?:[^'\\]|\\.)+)|((?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*))`)
	escaped = regexp.MustCompile(`\\(.)`)
)

// PasswordsIn returns the passwords in a URL, in a MySQL DSN and in settings (password=...). It returns each password as it is written, and
// also in decoded form if that is different.
func PasswordsIn(value string) []string {
	value = strings.TrimSpace(value)
	var found []string
	if at := urlStart.FindStringIndex(value); at != nil {
		found = passwordsOfURL(value[at[0]:], value[at[1]:])
	} else if m := mysqlPassword.FindStringSubmatch(value); m != nil {
		found = append(found, m[1])
	}
	for _, m := range passwordSetting.FindAllStringSubmatch(value, -1) {
		written := m[1] + m[2]
		found = append(found, written)
		if meant := escaped.ReplaceAllString(written, "$1"); meant != written {
			found = append(found, meant)
		}
		// The next setting may follow after a semicolon or an ampersand.
		if one, _, more := strings.Cut(m[2], ";"); more && one != "" {
			found = append(found, one)
		}
		if one, _, more := strings.Cut(m[2], "&"); more && one != "" {
			found = append(found, one)
			written = one
		}
		if meant, err := url.QueryUnescape(written); err == nil && meant != written {
			found = append(found, meant)
		}
	}
	return found
}

// passwordsOfURL returns the password before the host. rest is the text after the scheme. If the password contains an @, a / or a ? that is
// not percent-encoded, parsers of URLs read it in different ways. So passwordsOfURL returns the password of both readings.
func passwordsOfURL(whole, rest string) []string {
	u, err := url.Parse(whole)
	if err == nil && u.User == nil {
		return nil
	}
	authority, _, _ := strings.Cut(rest, "/")
	var found []string
	for _, text := range []string{authority, rest} {
		_, written, _ := strings.Cut(text[:max(strings.LastIndexByte(text, '@'), 0)], ":")
		if written != "" && !slices.Contains(found, written) {
			found = append(found, written)
		}
	}
	if err == nil {
		if meant, _ := u.User.Password(); meant != "" && !slices.Contains(found, meant) {
			found = append(found, meant)
		}
	}
	return found
}
