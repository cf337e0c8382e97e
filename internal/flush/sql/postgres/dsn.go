package postgres

import (
	"errors"
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
)

var (
	errDSN = errors.New("the DSN cannot be read: use " + formOfURL + `, ` +
		`with special characters of the password percent-encoded, or "` + formOfPairs + `"`)
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
	if err != nil || dsn == "" { // pgx would go by the environment
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
	return config, nil
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
