package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// quote is the quotation mark for identifiers. It is valid in every sql_mode.
const quote sql.Quote = "`"

// database is MySQL or MariaDB. Statements that differ between the two servers are in queries.sql, in comments that only one of the servers
// executes.
type database struct{ *stdsql.DB }

func open(s sql.Setup) (sql.Database, error) {
	config, err := readDSN(s.DSN)
	if err != nil {
		return nil, err
	}
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, errDSN
	}
	config.ClientFoundRows = true // an UPDATE counts the rows it found, as in the other databases
	config.InterpolateParams = false
	config.MultiStatements = false
	config.AllowAllFiles = false
	config.MaxAllowedPacket = 0 // 0 makes the driver ask the server, which closes a connection that sends a larger packet
	config.ParseTime = false
	config.Loc = time.UTC
	config.Logger = &mysql.NopLogger{} // errors need no log, because they are also returned
	if config.Timeout == 0 {
		config.Timeout = s.Limits.Statement
	}
	config.DialFunc = dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errDSN
	}
	db := database{}
	setUp := func(ctx context.Context, conn driver.Conn) error {
		for _, query := range []string{"session", "isolation"} {
			if err := execOn(ctx, conn, s.Queries[query]); err != nil {
				return err
			}
		}
		galera, err := isGalera(ctx, conn, s.Queries["galera"])
		if err != nil || !galera {
			return err
		}
		db.IsCertified.Store(true)
		return execOn(ctx, conn, s.Queries["galera_session"])
	}
	db.DB = stdsql.New(s, sessionConnector{connector, setUp}, s.MaxConns)
	w := &writer{}
	db.Writer = w
	db.Duplicate = func(err error) bool { return errorNumber(err) == 1062 }
	db.Refused = func(err error) bool { return judge(err) == sql.Refused }
	db.Culprit = w.Culprit
	db.Probe = probe
	db.Bundles = true
	// MariaDB repeats this error for the next parameters of the statement.
	db.Spoilt = func(err error) bool { return errorNumber(err) == 1105 }
	return db, nil
}

// sessionConnector makes connections, and sets up every new connection.
type sessionConnector struct {
	driver.Connector
	setUp func(ctx context.Context, conn driver.Conn) error
}

func (c sessionConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var line net.Conn
	conn, err := c.Connector.Connect(context.WithValue(ctx, netConnKey{}, &line))
	if err != nil {
		return nil, err
	}
	if err := c.setUp(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("set up the connection: %w", err)
	}
	return connection{conn.(driverConn), line}, nil
}

func execOn(ctx context.Context, conn driver.Conn, query string) error {
	_, err := conn.(driver.ExecerContext).ExecContext(ctx, query, nil)
	return err
}

// isGalera reports whether the server replicates by Galera, as MariaDB with wsrep and Percona XtraDB Cluster do. Other servers return no
// row.
func isGalera(ctx context.Context, conn driver.Conn, query string) (yes bool, err error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return false, err
	}
	defer rows.Close() // no row is left to read
	setting := make([]driver.Value, 2)
	switch err := rows.Next(setting); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	return on(sql.Text(setting[1])), nil
}

func (d database) Absent(*sql.Report) bool { return false }

// Ping also asks a server of a cluster whether it belongs to the majority: a server outside the majority still answers pings, but
// refuses everything else.
func (d database) Ping(ctx context.Context) error {
	if err := d.DB.Ping(ctx); err != nil || !d.Certified() {
		return err
	}
	var name, ready string
	if err := d.Pool.QueryRowContext(ctx, d.Queries["galera_ready"]).Scan(&name, &ready); err != nil {
		return err
	}
	if !on(ready) {
		return fmt.Errorf("%w: the server is cut off from the majority of its Galera cluster "+
			"(wsrep_ready is %s)", flush.ErrTransient, ready)
	}
	return nil
}

func errorNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// judge returns the verdict about an error by the server's error number. Some numbers above 1900 mean different errors in MySQL and
// MariaDB. judge contains no number that would match the wrong error.
func judge(err error) sql.Verdict {
	if unheld(err) {
		return sql.Refused
	}
	switch errorNumber(err) {
	case 0:
		return judgeDriver(err)
	case 1105: // "unknown" error with a text
		if strings.Contains(err.Error(), "max_allowed_packet") {
			return sql.Refused
		}
	case 1048, // NULL in a NOT NULL column
		1062,       // another unique index
		1264, 1690, // out of range, also for a sum
		1265, 1292, 1366, 1367, 1411, 1525, // wrong value
		1406,       // too long
		1451, 1452, // foreign key
		1644,       // SIGNAL in a trigger
		1118,       // too large for the log
		1416,       // geometry
		1761, 1762, // foreign key, because of a duplicate
		1172, 1242, 1339, // errors of triggers and generated columns
		1526, 1591, 1748, 1863, // no partition for the row
		3140, 3141, 3156, 3157, 3158, // JSON
		3819, 4025, // CHECK, of MySQL and of MariaDB
		1301, 1153: // longer than max_allowed_packet
		return sql.Refused
	case 1205, 1213, // lock timeout, deadlock
		1020,                   // changed since it was read (a cluster's conflict)
		1021, 1041, 1114, 1135, // disk full, memory, table full, threads
		1040, 1203, 1226, // too many connections
		1047, 1927, // node not ready, connection killed
		1053, 1077, 1079, // server shutdown
		1158, 1159, 1160, 1161, // network
		1180,       // COMMIT failed
		1290, 1792, // read-only server, read-only transaction
		1317, 1969, 3024, // interrupted; statement timeouts of both servers
		1836, 1637, // read-only mode; too many transactions
		4031, 2006, 2013: // idle for too long; server has gone away
		return sql.Passing
	}
	// The standard defines these classes: wrong data, a broken constraint, a trigger's error.
	switch class(err) {
	case "22", "23", "45":
		return sql.Refused
	}
	return sql.Lasting
}

// rolledBack reports whether the server has refused a statement that waited for too long, met a deadlock, or tried to write without being
// allowed to.
func rolledBack(err error) bool {
	n := errorNumber(err)
	return n == 1205 || n == 1213 || isReadOnly(n)
}

func isReadOnly(n uint16) bool { return n == 1290 || n == 1792 || n == 1836 }

// hint says where to find the setting that forbids writing, for an error that such a setting causes.
func hint(err error) string {
	if isReadOnly(errorNumber(err)) {
		return sql.AskDoctor
	}
	return ""
}

// unheld reports whether an error means that a key contains characters that its column's character set lacks, so no row has the key. Only
// errors about a parameter of a statement count, not errors about a comparison in a trigger.
func unheld(err error) bool {
	switch errorNumber(err) {
	case 1267, 1270: // for one key and for two keys
		return strings.Contains(err.Error(), ",COERCIBLE)")
	case 1271, // for more keys
		3854, 3988: // in MySQL
		return true
	}
	return false
}

// class returns the first two characters of the error's SQLSTATE, which classify the error.
func class(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return string(e.SQLState[:2])
	}
	return ""
}

// judgeDriver returns the verdict about an error that does not come from the server.
func judgeDriver(err error) sql.Verdict {
	var wrong *sql.WrongValue
	var network *net.OpError
	switch {
	case errors.As(err, &wrong), errors.Is(err, mysql.ErrPktTooLarge):
		return sql.Refused
	case sql.Disconnected(err), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, mysql.ErrMalformPkt),
		errors.Is(err, mysql.ErrPktSync), errors.Is(err, mysql.ErrBusyBuffer), errors.As(err, &network):
		return sql.Passing
	}
	return sql.Lasting
}
