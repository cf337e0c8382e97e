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

// The errors name the form and quote nothing of the DSN: what makes one unreadable is often the
// password.
const (
	formOfURL   = "postgres://user:password@host:5432/database?sslmode=require"
	formOfPairs = `host=… user=… password='…' dbname=…`
	form        = formOfURL + `, with special characters of the password percent-encoded, or "` + formOfPairs + `"`
)

var (
	errDSN = errors.New("the DSN cannot be read: use " + form)
	// errHost is how a password shows that is not percent-encoded.
	errHost = errors.New("the host in the DSN is no name of a host: percent-encode special characters of the password " +
		"(@ is %40, : is %3A, / is %2F, ? is %3F, # is %23, % is %25), or write the DSN as " + formOfPairs)
)

// readDSN reads a DSN. A text that is neither a URL of PostgreSQL nor libpq's key=value form is refused:
// libpq's rules would connect to a local server by its defaults.
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

// names finds what says where a list of key=value connects to. Without it pgx would go by the environment alone.
var names = regexp.MustCompile(`(^|\s)(host|hostaddr|port|user|dbname|database|service)\s*=`)

// wrongValue says which parameter has a value that pgx does not take; nil if it is another error. Its own words would quote the value.
func wrongValue(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	for _, v := range []struct{ said, name, want string }{
		{"invalid connect_timeout", "connect_timeout", wantNumber},
		{"invalid sslcertmode", "sslcertmode", "want disable, allow or require"},
		{"(sslmode is invalid)", "sslmode", "want disable, allow, prefer, require, verify-ca or verify-full"},
		{"unknown target_session_attrs", "target_session_attrs", "want any, read-write, primary or prefer-standby"},
		{"unknown channel_binding", "channel_binding", "want disable, prefer or require"},
		{"invalid require_auth", "require_auth", "want methods such as scram-sha-256, with commas between them"},
		{"invalid min_protocol_version", "min_protocol_version", "want 3.0, 3.2 or latest"},
		{"invalid max_protocol_version", "max_protocol_version", "want 3.0, 3.2 or latest"},
		{"min_protocol_version cannot be greater", "min_protocol_version", "want no more than max_protocol_version"},
		{"failed to read service", "service", "no service file that baton reads has it: correct service or servicefile"},
		{"(unable to read CA file", "sslrootcert", "baton cannot read this file"},
		{"(unable to add CA to cert pool", "sslrootcert", "its file has no certificate: want PEM"},
		{`both "sslcert" and "sslkey" are required`, "sslcert", "want sslcert and sslkey, or neither"},
		{"(unable to read sslkey", "sslkey", "baton cannot read this file"},
		{"(failed to decode sslkey", "sslkey", "its file has no private key: want PEM"},
		{"(unable to find sslpassword", "sslpassword", "the key has a passphrase: want it here"},
		{"(unable to decrypt key", "sslpassword", "it does not open the key"},
		{"(unable to read cert", "sslcert", "baton cannot read this file"},
		{"(unable to load cert", "sslcert", "certificate and key do not belong together: want PEM"},
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

// settingName is the form of a setting's name. Anything else shows that a text was no list of key=value.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

func afterScheme(dsn string) (rest string, ok bool) {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, ok = strings.CutPrefix(dsn, scheme); ok {
			return rest, true
		}
	}
	return "", false
}

// strayAt reports whether a URL has another @ than the one before its host. Only the parameters that libpq knows
// may have one: Azure and Google Cloud have it in the user's name.
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

// hosts are the names and addresses that a DSN says, and directories of sockets.
func hosts(c *pgx.ConnConfig) []string {
	all := map[string]bool{c.Host: true}
	for _, f := range c.Fallbacks {
		all[f.Host] = true
	}
	return slices.Sorted(maps.Keys(all))
}
