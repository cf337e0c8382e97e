package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// mysqlQuote quotes in every sql_mode.
const mysqlQuote quote = "`"

var errMySQLDSN = errors.New("the DSN cannot be read: use user:password@tcp(host:3306)/database")

// mysqlDB is MySQL or MariaDB. What differs between the two is in comments that
// only one of them executes, in queries/mysql.sql.
type mysqlDB struct{ *sqlDB }

func openMySQL(s *Store, o Options) (database, error) {
	config, err := mysql.ParseDSN(o.DSN)
	if err != nil {
		return nil, errMySQLDSN
	}
	if config.DBName == "" {
		return nil, errors.New("the DSN names no database: use user:password@tcp(host:3306)/database")
	}
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, errMySQLDSN
	}
	config.ClientFoundRows = true // an UPDATE tells the rows it found, as elsewhere
	config.InterpolateParams = false
	config.MultiStatements = false
	config.AllowAllFiles = false
	config.MaxAllowedPacket = 0 // ask the server: it hangs up on whoever sends more
	config.ParseTime = false
	config.Loc = time.UTC
	config.Logger = &mysql.NopLogger{} // every error is returned, too
	if config.Timeout == 0 {
		config.Timeout = s.limits.statement
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errMySQLDSN
	}
	setUp := []string{s.queries["session"], s.queries["isolation"]}
	db := mysqlDB{newSQLDB(s, sessionConnector{connector, setUp}, o.MaxConns)}
	db.writer = &mysqlWriter{}
	db.duplicate = func(err error) bool { return mysqlNumber(err) == 1062 }
	db.refused = func(err error) bool { return db.judge(err) == refused }
	// MariaDB repeats this error for whatever the statement is given next.
	db.spoilt = func(err error) bool { return mysqlNumber(err) == 1105 }
	return db, nil
}

// sessionConnector sets up every new connection.
type sessionConnector struct {
	driver.Connector
	setUp []string
}

func (c sessionConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range c.setUp {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, text, nil); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("set up the connection: %w", err)
		}
	}
	return conn, nil
}

func (d mysqlDB) migration() (migration, error) {
	return migration{
		db:      d.db,
		dialect: goose.DialectMySQL,
		release: func() error { return nil },
	}, nil
}

func mysqlNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// judge goes by the server's error numbers. Above 1900 MySQL and MariaDB use
// some for different things; none of those is listed for the wrong one.
func (d mysqlDB) judge(err error) verdict {
	switch mysqlNumber(err) {
	case 0:
		return judgeMySQLDriver(err)
	case 1105: // "unknown", with a text
		if strings.Contains(err.Error(), "max_allowed_packet") {
			return refused
		}
	case 1048, // NULL in a NOT NULL column
		1062,       // another unique index, or none of ours
		1264, 1690, // out of range, also of a sum
		1265, 1292, 1366, 1367, 1411, 1525, // wrong value
		1406,       // too long
		1451, 1452, // foreign key
		1644,       // SIGNAL in a trigger
		1118,       // too much for the log
		1416,       // geometry
		1761, 1762, // foreign key, by way of a duplicate
		1172, 1242, 1339, // what a trigger or a generated column cannot do with it
		1526, 1591, 1748, 1863, // no partition for it
		3140, 3141, 3156, 3157, 3158, // JSON
		3819, 4025, // CHECK, of MySQL and of MariaDB
		1301, 1153: // longer than max_allowed_packet
		return refused
	case 1205, 1213, // lock timeout, deadlock
		1020,                   // changed since it was read (a cluster's conflict)
		1021, 1041, 1114, 1135, // disk full, memory, table full, threads
		1040, 1203, 1226, // too many connections
		1047, 1927, // node not ready, connection killed
		1053, 1077, 1079, // server shutdown
		1158, 1159, 1160, 1161, // network
		1180,       // COMMIT failed
		1290, 1792, // read-only server, read-only transaction
		1317, 1969, 3024, // interrupted; statement timeouts of both
		1836, 1637, // read-only mode; too many transactions
		4031, 2006, 2013: // idle for too long; gone
		return passing
	}
	// The standard's classes: wrong data, a broken constraint, what a trigger says.
	switch mysqlClass(err) {
	case "22", "23", "45":
		return refused
	}
	return lasting
}

// mysqlClass is the class of the error's SQLSTATE.
func mysqlClass(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return string(e.SQLState[:2])
	}
	return ""
}

// judgeMySQLDriver judges what the server did not say.
func judgeMySQLDriver(err error) verdict {
	var wrong *wrongValue
	var network *net.OpError
	switch {
	case errors.As(err, &wrong), errors.Is(err, mysql.ErrPktTooLarge):
		return refused
	case disconnected(err), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, mysql.ErrMalformPkt),
		errors.Is(err, mysql.ErrPktSync), errors.Is(err, mysql.ErrBusyBuffer), errors.As(err, &network):
		return passing
	}
	return lasting
}
