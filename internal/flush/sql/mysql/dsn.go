package mysql

import (
	"errors"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"baton/internal/text"
)

// form is the form of a DSN that error messages about a DSN show. These messages quote no part of the DSN itself, because the password is
// often the part that makes a DSN unreadable.
const form = "user:password@tcp(host:3306)/database, the password as it is, without percent-encoding"

var (
	errDSN  = errors.New("the DSN cannot be read: use " + form)
	errHost = errors.New("the part of the DSN in tcp(…) is not a host and port: use " + form)
	errTLS  = errors.New("the DSN has a TLS parameter of another driver: write tls=true, or tls=skip-verify to " +
		"trust every certificate")
)

// readDSN parses a DSN in the form of the MySQL driver.
func readDSN(dsn string) (config *mysql.Config, err error) {
	defer func() {
		if recover() != nil { // the driver panics for a wrong strict=
			config, err = nil, errDSN
		}
	}()
	dsn = strings.TrimSpace(dsn)
	config, err = mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errDSN
	}
	for name := range config.Params { // the driver would set these parameters on the server
		if name = strings.ToLower(name); strings.HasPrefix(name, "ssl") || strings.HasPrefix(name, "usessl") {
			return nil, errTLS
		}
	}
	if config.DBName == "" {
		return nil, errors.New("the DSN names no database: use " + form)
	}
	if config.Net == "tcp" {
		if host, _, err := net.SplitHostPort(config.Addr); err != nil || host != "" && !text.IsHost(host) {
			return nil, errHost
		}
	}
	return config, nil
}
