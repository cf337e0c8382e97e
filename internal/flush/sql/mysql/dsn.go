package mysql

import (
	"errors"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"baton/internal/text"
)

// The errors quote nothing of the DSN: what makes one unreadable is often the password.
const form = "user:password@tcp(host:3306)/database, the password as it is, without percent-encoding"

var (
	errDSN  = errors.New("the DSN cannot be read: use " + form)
	errHost = errors.New("the part of the DSN in tcp(…) is no host and port: use " + form)
	errTLS  = errors.New("the DSN has a parameter of TLS that is another driver's: write tls=true, or tls=skip-verify to " +
		"trust every certificate")
)

// readDSN reads the form of the driver.
func readDSN(dsn string) (config *mysql.Config, err error) {
	defer func() {
		if recover() != nil { // the driver's way to refuse strict=
			config, err = nil, errDSN
		}
	}()
	dsn = strings.TrimSpace(dsn)
	config, err = mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errDSN
	}
	for name := range config.Params { // the driver would set them on the server
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
