package mysql

import (
	"context"
	"database/sql/driver"
	"net"
)

// connection is a connection of the MySQL driver, together with its network connection. It implements stdsql.Cutter.
type connection struct {
	driverConn
	netConn net.Conn
}

// Cut implements stdsql.Cutter.
func (c connection) Cut() { _ = c.netConn.Close() } // the connection may be closed already

// driverConn lists the interfaces of database/sql that the driver's connections implement.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// netConnKey is the key under which a context contains a *net.Conn.
type netConnKey struct{}

// dial connects as the driver does by default. If the context contains a *net.Conn, dial stores the new network connection there.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	line, err := dialer.DialContext(ctx, network, address)
	if into, ok := ctx.Value(netConnKey{}).(*net.Conn); ok {
		*into = line
	}
	return line, err
}
