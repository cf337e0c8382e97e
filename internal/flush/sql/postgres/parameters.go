package postgres

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// parameter is a parameter of libpq, or of another driver, that pgx would pass to the server as a setting. No server has such a setting.
type parameter struct {
	harmless []string // values that request what baton does anyway
	// take, if set, applies a value. It returns false for a value that libpq would also reject.
	take func(c *pgx.ConnConfig, value string) bool
	// instead is the remedy if the value is neither harmless nor applied.
	instead string
}

const (
	noKerberos = "baton does not log in by Kerberos: remove it, and use a password or a client certificate"
	noOAuth    = "baton does not log in by OAuth: remove it, and use a password or a client certificate"
	noKeys     = "write password or passfile instead"
	noCRL      = "baton does not read lists of revoked certificates: remove it"
	asSSLMode  = "write sslmode=require, sslmode=verify-full or sslmode=disable instead"
	ofPool     = "it is for the pool of another driver: remove it"
	wantNumber = "use a whole number of seconds"
	wantTLS    = "use TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3"
)

// parameters contains the parameters of libpq 12 to 18 that pgx does not support, and frequent parameters of other drivers.
var parameters = map[string]parameter{
	"hostaddr":                  {instead: "write the address as host"},
	"fallback_application_name": {take: fallbackName},
	"keepalives":                {harmless: []string{"1"}, take: keepalives, instead: "use 0 or 1"},
	"keepalives_idle":           {take: keepalives, instead: wantNumber},
	"keepalives_interval":       {take: keepalives, instead: wantNumber},
	"keepalives_count":          {take: keepalives, instead: "use a whole number"},
	"tcp_user_timeout":          {harmless: []string{"0"}, instead: "election.ttl bounds each round trip: remove it"},
	"sslcompression":            {harmless: []string{"0"}, instead: "baton does not compress connections: remove it"},
	"sslcrl":                    {instead: noCRL},
	"sslcrldir":                 {instead: noCRL},
	"requirepeer":               {instead: "baton does not check the owner of a socket: remove it"},
	"requiressl":                {harmless: []string{"0"}, instead: asSSLMode},
	"ssl_min_protocol_version":  {take: takeTLS(func(t *tls.Config, version uint16) { t.MinVersion = version }), instead: wantTLS},
	"ssl_max_protocol_version":  {take: takeTLS(func(t *tls.Config, version uint16) { t.MaxVersion = version }), instead: wantTLS},
	"sslkeylogfile":             {instead: "baton does not log the keys of connections: remove it"},
	"gssencmode":                {harmless: []string{"disable", "prefer"}, instead: "baton encrypts only with TLS: write sslmode instead"},
	"gsslib":                    {instead: noKerberos},
	"gssdelegation":             {harmless: []string{"0"}, instead: noKerberos},
	"krbsrvname":                {instead: noKerberos},
	"krbspn":                    {instead: noKerberos},
	"replication":               {harmless: []string{"false", "off", "no", "0"}, instead: "such a connection cannot write rows: remove it"},
	"load_balance_hosts":        {harmless: []string{"disable"}, instead: "baton tries the hosts in their order: remove it"},
	"sslnegotiation":            {harmless: []string{"", "postgres", "direct"}, instead: "use postgres or direct"},
	"scram_client_key":          {instead: noKeys},
	"scram_server_key":          {instead: noKeys},
	"oauth_issuer":              {instead: noOAuth},
	"oauth_client_id":           {instead: noOAuth},
	"oauth_client_secret":       {instead: noOAuth},
	"oauth_scope":               {instead: noOAuth},
	"authtype":                  {instead: "it is obsolete: remove it"},
	"tty":                       {instead: "it is obsolete: remove it"},

	"ssl":                     {instead: asSSLMode},
	"sslfactory":              {instead: asSSLMode},
	"sslaccept":               {instead: asSSLMode},
	"uselibpqcompat":          {instead: "it is for another driver: remove it"},
	"schema":                  {instead: "write search_path instead"},
	"currentSchema":           {instead: "write search_path instead"},
	"ApplicationName":         {instead: "write application_name instead"},
	"pgbouncer":               {instead: "remove it: baton detects a pooler, or set `pooler: transaction` beside the dsn"},
	"prepareThreshold":        {instead: ofPool},
	"statement_cache_size":    {instead: ofPool},
	"connection_limit":        {instead: ofPool},
	"pool_timeout":            {instead: ofPool},
	"pool_size":               {instead: ofPool},
	"max_pool_size":           {instead: ofPool},
	"socket_timeout":          {instead: "election.ttl bounds each round trip: remove it"},
	"loginTimeout":            {instead: "write connect_timeout instead"},
	"tcpKeepAlive":            {instead: "write keepalives instead"},
	"targetServerType":        {instead: "write target_session_attrs instead"},
	"stringtype":              {instead: "it is for another driver: remove it"},
	"reWriteBatchedInserts":   {instead: "it is for another driver: remove it"},
	"allowPublicKeyRetrieval": {instead: "it is for MySQL: remove it"},
}

// takeParameters applies those parameters of libpq that baton supports, and removes them from the settings that are sent to the server. An
// error names the parameter, and never its value.
func takeParameters(c *pgx.ConnConfig) error {
	given := maps.Clone(c.RuntimeParams)
	for name, value := range map[string]string{ // pgx removes these parameters, but ignores them or does not check their values
		"krbsrvname": c.KerberosSrvName, "krbspn": c.KerberosSpn, "sslnegotiation": c.SSLNegotiation,
	} {
		if value != "" {
			given[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, ok := parameters[name]
		if !ok {
			continue
		}
		if !slices.Contains(p.harmless, given[name]) && (p.take == nil || !p.take(c, given[name])) {
			return wrong(name, p.instead)
		}
	}
	maps.DeleteFunc(c.RuntimeParams, func(name, _ string) bool { _, ours := parameters[name]; return ours })
	return nil
}

func wrong(name, remedy string) error {
	return fmt.Errorf("the parameter %s of the DSN: %s", name, remedy)
}

func fallbackName(c *pgx.ConnConfig, name string) bool {
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = name
	}
	return true
}

// keepalives makes the operating system probe every new connection as the keepalives parameters say.
func keepalives(c *pgx.ConnConfig, _ string) bool {
	dialer := net.Dialer{Timeout: c.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}}
	if on, given := c.RuntimeParams["keepalives"]; given && on != "1" {
		if on != "0" {
			return false
		}
		dialer.KeepAlive, dialer.KeepAliveConfig.Enable = -1, false
	}
	for name, set := range map[string]func(n int){
		"keepalives_idle":     func(n int) { dialer.KeepAliveConfig.Idle = time.Duration(n) * time.Second },
		"keepalives_interval": func(n int) { dialer.KeepAliveConfig.Interval = time.Duration(n) * time.Second },
		"keepalives_count":    func(n int) { dialer.KeepAliveConfig.Count = n },
	} {
		value, given := c.RuntimeParams[name]
		if !given {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return false
		}
		if n > 0 { // otherwise the system's default applies
			set(int(n))
		}
	}
	c.DialFunc = dialer.DialContext
	return true
}

var versions = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

// takeTLS returns a function that sets a version of TLS, given by its name, for every address that pgx may connect to.
func takeTLS(set func(t *tls.Config, version uint16)) func(c *pgx.ConnConfig, value string) bool {
	return func(c *pgx.ConnConfig, value string) bool {
		version, ok := versions[value]
		return ok && eachTLS(c, func(t *tls.Config) { set(t, version) })
	}
}

// eachTLS changes the TLS configuration for every address that pgx may connect to. It returns true.
func eachTLS(c *pgx.ConnConfig, set func(*tls.Config)) bool {
	if c.TLSConfig != nil {
		set(c.TLSConfig)
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig != nil {
			set(f.TLSConfig)
		}
	}
	return true
}
