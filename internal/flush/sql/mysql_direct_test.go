package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// Where the connection is compressed the driver encodes the rows, else they are encoded here.
func TestRowsEncodedDirectlyAreThoseThatTheDriverEncodes(t *testing.T) {
	db := prepared(t, mariaDB)
	const columns = "(id bigint PRIMARY KEY, i bigint, f double, n decimal(60,10), s longtext CHARACTER SET utf8mb4, b longblob, " +
		"o boolean, at datetime(6), stamp timestamp(6) NULL, day date, j json, u uuid, e enum('good', 'bad')) ENGINE=InnoDB"
	rows := kindsOfRows()
	tables := map[string]string{"direct": "", "driven": "&compress=true"}
	for table, parameter := range tables {
		db.Exec(t, "CREATE TABLE "+table+" "+columns)
		s := db.open(func(o *sql.Options) { o.DSN += dsnParameter(o.DSN, parameter) })
		takeOver(t, s, fence(1))
		p := plan(t, s, table, []string{"id"})
		for part := range 2 { // over no rows, and over those that are there
			if out := apply(t, s, fence(1), p, batch(table, part, rows...)); out.Rows != int64(len(rows)) || len(out.Dead) > 0 {
				t.Fatalf("%s: %d rows written, %d refused: %v", table, out.Rows, len(out.Dead), out.Dead)
			}
		}
		gone := slices.Clone(rows[:2])
		gone[0].Delete, gone[1].Delete = true, true
		apply(t, s, fence(1), p, batch(table, 3, gone...))
	}
	const query = "SELECT id, i, f, n, hex(s), hex(b), o, at, UNIX_TIMESTAMP(stamp), day, j, u, e FROM %s ORDER BY id"
	direct, driven := db.Rows(t, fmt.Sprintf(query, "direct")), db.Rows(t, fmt.Sprintf(query, "driven"))
	if len(direct) != len(rows)-2 {
		t.Fatalf("%d rows, want %d", len(direct), len(rows)-2)
	}
	for i := range driven {
		if !slices.Equal(direct[i], driven[i]) {
			t.Errorf("row %s:\ndirect %.300q\ndriven %.300q", driven[i][0], direct[i], driven[i])
		}
	}
}

func dsnParameter(dsn, parameter string) string {
	if !strings.Contains(dsn, "?") {
		return strings.Replace(parameter, "&", "?", 1)
	}
	return parameter
}

// kindsOfRows have values of every kind, at the edges of what the protocol tells apart.
func kindsOfRows() []row.Row {
	full := func(text, bytes string, at time.Time) []any {
		return []any{-7, 0.1, row.String(row.KindNumeric, "-12345678901234567890.5"), text, row.String(row.KindBytes, bytes), true, at, at,
			row.Date(at), row.String(row.KindJSON, `{"a": "é"}`), row.String(row.KindUUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
			row.String(row.KindOther, "good")}
	}
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var out []row.Row
	add := func(values []any) { out = append(out, rowOf(append([]any{len(out) + 1}, values...)...)) }
	add(full("to be deleted", "", at))
	add(full("and this", "", at))
	for _, length := range []int{0, 1, 250, 251, 252, 65535, 65536, 70000} {
		add(full(strings.Repeat("x", length), strings.Repeat("\xff", length), at))
	}
	add(full("Zoë 😀 'x' \"y\" \\ \n\x1a%_", string(all), at.Truncate(time.Second)))
	add(full("early", "\x00", time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)))
	for i := range 12 { // each column in turn is NULL
		values := full("null", "\x00", at)
		values[i] = nil
		add(values)
	}
	for _, year := range []int{1, 999, 9999} { // out of the range of a timestamp
		values := full("year", "", time.Date(year, 12, 31, 1, 2, 3, 4000, time.UTC))
		values[7] = nil
		add(values)
	}
	return out
}
