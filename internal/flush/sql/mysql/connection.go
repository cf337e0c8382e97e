package mysql

import (
	"context"
	"database/sql/driver"
	"net"
)

// connection is one of the driver, with the line that it is on: see stdsql.Cutter.
type connection struct {
	driverConn
	line net.Conn
}

// Cut implements stdsql.Cutter.
func (c connection) Cut() { _ = c.line.Close() } // it may be closed already

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

// lineKey is of a *net.Conn in a context.
type lineKey struct{}

// dial dials as the driver does by default. It stores the connection in the context's pointer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	line, err := dialer.DialContext(ctx, network, address)
	if into, ok := ctx.Value(lineKey{}).(*net.Conn); ok {
		*into = line
	}
	return line, err
}
