package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"baton/internal/flush/sql"
)

// conn is a connection of the driver, and what is beneath it.
type conn struct {
	driverConn
	wire *wire
}

// driverConn is what the driver's connections can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// dialed is where the dialer leaves the connection beneath the driver's.
type dialed struct{}

// dialFunc opens a connection.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialWire dials as the driver would, or as the DSN has it.
func dialWire(dial dialFunc) dialFunc {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		beneath, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w := ctx.Value(dialed{}).(*wire)
		w.Conn = beneath
		return w, nil
	}
}

// sessionConnector sets up every new connection.
type sessionConnector struct {
	driver.Connector
	setUp func(ctx context.Context, conn *conn) error
}

func (c sessionConnector) Connect(ctx context.Context) (driver.Conn, error) {
	w := &wire{known: map[string]uint32{}}
	of, err := c.Connector.Connect(context.WithValue(ctx, dialed{}, w))
	if err != nil {
		return nil, err
	}
	conn := &conn{of.(driverConn), w}
	if err := c.setUp(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("set up the connection: %w", err)
	}
	return conn, nil
}

func execOn(ctx context.Context, conn driver.ExecerContext, query string) error {
	_, err := conn.ExecContext(ctx, query, nil)
	return err
}

// maxPacket bounds the packets that are executed directly, and so what a connection keeps for
// them. Of longer values the driver's part is small.
const maxPacket = 1 << 20

// limitPackets keeps packets within what the server takes: it closes the connection at longer ones.
func (c *conn) limitPackets(ctx context.Context, query string) error {
	longest, err := first(ctx, c, query, 1)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(longest[0])
	c.wire.limit = min(maxPacket, n-headLength)
	return err
}

// isGalera reports whether the server replicates by Galera: MariaDB with wsrep, Percona
// XtraDB Cluster. Others answer the query with no row.
func isGalera(ctx context.Context, conn driver.QueryerContext, query string) (yes bool, err error) {
	setting, err := first(ctx, conn, query, 2)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && on(setting[1]), err
}

// first is the first row of a query with so many columns; io.EOF if it has none.
func first(ctx context.Context, conn driver.QueryerContext, query string, columns int) ([]string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // nothing of it is left to read
	values := make([]driver.Value, columns)
	err = rows.Next(values)
	texts := make([]string, columns)
	for i, v := range values {
		texts[i] = sql.Text(v)
	}
	return texts, err
}
