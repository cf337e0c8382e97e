package postgres

import (
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"baton/internal/text"
)

// Error messages about a DSN show these forms, and quote no part of the DSN. The password is often the part that makes a DSN unreadable.
const (
	formOfURL   = "postgres://user:password@host:5432/database?sslmode=require"
	formOfPairs = `host=… user=… password='…' dbname=…`
	form        = formOfURL + `, with special characters of the password percent-encoded, or "` + formOfPairs + `"`
)

var (
	errDSN = errors.New("the DSN cannot be read: use " + form)
	// errHost is the usual error if a password is not percent-encoded.
	errHost = errors.New("the host in the DSN is not a valid host name: percent-encode special characters of the password " +
		"(@ is %40, : is %3A, / is %2F, ? is %3F, # is %23, % is %25), or write the DSN as " + formOfPairs)
)

// readDSN parses a DSN. It rejects a text that is neither a URL of PostgreSQL nor in libpq's key=value form. By libpq's rules such a text
// would connect to a local server with default settings.
func readDSN(dsn string) (*pgxpool.Config, error) {
	dsn = strings.TrimSpace(dsn)
	rest, isURL := afterScheme(dsn)
	if isURL && strayAt(rest) {
		return nil, errHost
	}
	config, err := pgxpool.ParseConfig(dsn)
	if value := wrongValue(err); value != nil {
		return nil, value
	}
	if err != nil || !isURL && !names.MatchString(dsn) {
		return nil, errDSN
	}
	for name := range config.ConnConfig.RuntimeParams {
		if !settingName.MatchString(name) {
			return nil, errDSN
		}
	}
	for _, host := range hosts(config.ConnConfig) {
		if !strings.HasPrefix(host, "/") && !text.IsHost(host) {
			return nil, errHost
		}
	}
	return config, takeParameters(config.ConnConfig)
}

// names matches the keys that name the server in a DSN of the form key=value. For a DSN without such a key, pgx would use only the
// environment.
var names = regexp.MustCompile(`(^|\s)(host|hostaddr|port|user|dbname|database|service)\s*=`)

// wrongValue returns an error that names the parameter whose value pgx does not accept. It returns nil for any other error. pgx's own error
// would quote the value.
func wrongValue(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	for _, v := range []struct{ said, name, want string }{
		{"invalid connect_timeout", "connect_timeout", wantNumber},
		{"invalid sslcertmode", "sslcertmode", "use disable, allow or require"},
		{"(sslmode is invalid)", "sslmode", "use disable, allow, prefer, require, verify-ca or verify-full"},
		{"unknown target_session_attrs", "target_session_attrs", "use any, read-write, primary or prefer-standby"},
		{"unknown channel_binding", "channel_binding", "use disable, prefer or require"},
		{"invalid require_auth", "require_auth", "use methods such as scram-sha-256, with commas between them"},
		{"invalid min_protocol_version", "min_protocol_version", "use 3.0, 3.2 or latest"},
		{"invalid max_protocol_version", "max_protocol_version", "use 3.0, 3.2 or latest"},
		{"min_protocol_version cannot be greater", "min_protocol_version", "it must not be above max_protocol_version"},
		{"failed to read service", "service", "no service file that baton reads has this service: correct service or servicefile"},
		{"(unable to read CA file", "sslrootcert", "baton cannot read this file"},
		{"(unable to add CA to cert pool", "sslrootcert", "the file has no certificate in PEM form"},
		{`both "sslcert" and "sslkey" are required`, "sslcert", "set both sslcert and sslkey, or neither"},
		{"(unable to read sslkey", "sslkey", "baton cannot read this file"},
		{"(failed to decode sslkey", "sslkey", "the file has no private key in PEM form"},
		{"(unable to find sslpassword", "sslpassword", "the key has a passphrase: write the passphrase here"},
		{"(unable to decrypt key", "sslpassword", "this passphrase does not decrypt the key"},
		{"(unable to read cert", "sslcert", "baton cannot read this file"},
		{"(unable to load cert", "sslcert", "certificate and key do not belong together, or are not in PEM form"},
	} {
		if strings.Contains(said, v.said) {
			if file, ok := errors.AsType[*fs.PathError](err); ok {
				v.want += ": " + file.Err.Error()
			}
			return wrong(v.name, v.want)
		}
	}
	return nil
}

// settingName matches the name of a setting. If a name in a DSN does not match, the DSN is not a list of key=value.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

func afterScheme(dsn string) (rest string, ok bool) {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, ok = strings.CutPrefix(dsn, scheme); ok {
			return rest, true
		}
	}
	return "", false
}

// strayAt reports whether a URL contains another @ than the one before its host. Only parameters of libpq may contain another @, because
// the user's name contains it on Azure and Google Cloud.
func strayAt(rest string) bool {
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	before, query, _ := strings.Cut(rest, "?")
	if strings.Contains(before, "@") {
		return true
	}
	for pair := range strings.SplitSeq(query, "&") {
		if key, _, _ := strings.Cut(pair, "="); strings.Contains(pair, "@") && !slices.Contains(withAt, key) {
			return true
		}
	}
	return false
}

var withAt = []string{"user", "password", "dbname", "host", "application_name", "passfile", "sslpassword", "sslkey", "sslcert",
	"sslrootcert", "service", "servicefile", "krbspn", "options"}

// hosts returns the names and addresses of the hosts in a DSN, and the directories of its Unix sockets.
func hosts(c *pgx.ConnConfig) []string {
	all := map[string]bool{c.Host: true}
	for _, f := range c.Fallbacks {
		all[f.Host] = true
	}
	return slices.Sorted(maps.Keys(all))
}
