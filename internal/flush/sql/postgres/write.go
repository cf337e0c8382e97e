package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// pgPlan is a plan as PostgreSQL statements. Every column travels as one array:
// a batch of any size is one statement with as many parameters as columns.
type pgPlan struct {
	upsert, remove, update string
	unload                 string // upsert from the staging table
	merge                  string // upsert of rows that take away; "": as the others
	adds                   []int  // columns that are added to
	staging                stagingTable
	columns, key           []pgColumn
	formats                []int16 // one per column: binary
}

// pgColumn is a column and the array it travels in.
type pgColumn struct {
	row.Column
	index   int
	element string // type of the array's elements
	oid     uint32
}

func compilePostgres(p *row.Plan) *pgPlan {
	out := &pgPlan{}
	for i, c := range p.Columns {
		out.columns = append(out.columns, newPGColumn(c.Column, i))
		out.formats = append(out.formats, 1)
		if c.Op == row.OpAdd {
			out.adds = append(out.adds, i)
		}
	}
	for _, i := range p.Key {
		out.key = append(out.key, out.columns[i])
	}
	table := pgQuote.Table(p.Table.Name)
	insert := "INSERT INTO " + table + " AS t (" + pgList(out.columns, pgQuotedName) + ") SELECT " + pgList(out.columns, pgCast) + " FROM "
	out.staging = newStagingTable(out.columns)
	out.upsert = insert + pgUnnest(out.columns) + " AS " + pgNames(out.columns) + pgConflict(p)
	out.unload = insert + "pg_temp." + out.staging.name + " AS u" + pgConflict(p)
	if len(out.key) == 0 {
		return out
	}
	var all []string
	for _, c := range out.key {
		all = append(all, "t."+pgQuote.Ident(c.Name)+" = "+pgCast(c))
	}
	same := strings.Join(all, " AND ")
	update := "UPDATE " + table + " AS t SET " + strings.Join(pgUpdates(p, out.columns), ", ") + " FROM "
	out.remove = "DELETE FROM " + table + " AS t USING " + pgLookups(out.key) + " AS " + pgNames(out.key) + " WHERE " + same
	out.update = update + pgLookups(out.columns) + " AS " + pgNames(out.columns) + " WHERE " + same
	if len(out.adds) > 0 && pgMerges(p) {
		numbered := " WITH ORDINALITY AS " + pgNames(out.columns, "n")
		out.merge = "WITH done AS (" + update + pgLookups(out.columns) + numbered + " WHERE " + same + " RETURNING u.n) " +
			insert + pgUnnest(out.columns) + numbered + " WHERE u.n NOT IN (SELECT n FROM done)" + pgConflict(p)
	}
	return out
}

// pgMerges: of rows that take away from a sum those that are there are updated first, and only the
// others upserted. The database checks the row that an upsert would insert, also where there is one
// already, and would refuse -1 for a column that must not be negative, although 10 - 1 is not. What
// comes upon a row that somebody else has inserted meanwhile, or two rows of which the database
// holds the keys for equal, is the upsert's part.
//
// An upsert finds rows by an index. What that compares with may be an operator in a
// schema that is not searched: the types that have one are left to upserts, and so are
// the tables that say so.
func pgMerges(p *row.Plan) bool {
	for _, k := range p.Key {
		if p.Columns[k].Kind == row.KindOther {
			return false
		}
	}
	return !p.Keep && !p.Table.UpsertOnly
}

// takeAway reports whether one of the rows is to make a sum less.
func (p *pgPlan) takeAway(rows []row.Row) bool {
	for _, i := range p.adds {
		if slices.ContainsFunc(rows, func(r row.Row) bool { return r.Values[i].Negative() }) {
			return true
		}
	}
	return false
}

// pgConflict says what happens to a row that is there. Without a key every row
// is a new one.
//
// An upsert finds each row by the unique index and so costs the same whatever the table's size;
// it has no join that could be planned badly. Updating the rows that are there first saves the
// server at most a tenth where all are there, and costs it a third more where none is.
func pgConflict(p *row.Plan) string {
	if len(p.Key) == 0 {
		return ""
	}
	key := make([]string, len(p.Key))
	for i, k := range p.Key {
		key[i] = pgQuote.Ident(p.Columns[k].Name)
	}
	var set []string
	for i, c := range p.Columns {
		name := pgQuote.Ident(c.Name)
		switch {
		case sql.IsKey(p, i) || p.Keep:
		case c.Op == row.OpAdd:
			set = append(set, name+" = COALESCE(t."+name+", 0) + COALESCE(excluded."+name+", 0)")
		default:
			set = append(set, name+" = excluded."+name)
		}
	}
	target := " ON CONFLICT (" + strings.Join(key, ", ") + ") DO "
	if len(set) == 0 {
		return target + "NOTHING"
	}
	return target + "UPDATE SET " + strings.Join(set, ", ")
}

// pgUpdates adds without a cast: only the sum must fit the column.
func pgUpdates(p *row.Plan, columns []pgColumn) []string {
	var set []string
	for i, c := range p.Columns {
		name, value := pgQuote.Ident(c.Name), pgCast(columns[i])
		switch {
		case sql.IsKey(p, i):
			continue
		case c.Op == row.OpAdd && columns[i].element != "text":
			value = "u.c" + strconv.Itoa(i+1)
			fallthrough
		case c.Op == row.OpAdd:
			value = "COALESCE(t." + name + ", 0) + COALESCE(" + value + ", 0)"
		}
		set = append(set, name+" = "+value)
	}
	if len(set) == 0 { // it is only asked whether the row is there
		name := pgQuote.Ident(p.Columns[p.Key[0]].Name)
		set = []string{name + " = t." + name}
	}
	return set
}

func pgQuotedName(c pgColumn) string { return pgQuote.Ident(c.Name) }

// pgCast casts to the type without its length. A cast to varchar(5) would cut,
// where the assignment to such a column refuses.
func pgCast(c pgColumn) string {
	return "u.c" + strconv.Itoa(c.index+1) + "::" + c.DBType
}

func pgUnnest(columns []pgColumn) string { return pgArrays(columns, "$%d::%s[]") }

// pgLookups is pgUnnest where rows of the table are looked up. The planner does not see how long
// the arrays are, takes them for short, and uses the index: for 5,000 rows of 100,000 it would
// read the whole table, with every batch.
func pgLookups(columns []pgColumn) string { return pgArrays(columns, "(SELECT $%d::%s[])") }

func pgArrays(columns []pgColumn, format string) string {
	n := 0
	return "unnest(" + pgList(columns, func(c pgColumn) string {
		n++
		return fmt.Sprintf(format, n, c.element)
	}) + ")"
}

// pgNames calls the columns of a row source as pgCast does.
func pgNames(columns []pgColumn, more ...string) string {
	names := []string{pgList(columns, func(c pgColumn) string { return "c" + strconv.Itoa(c.index+1) })}
	return "u(" + strings.Join(append(names, more...), ", ") + ")"
}

func pgList(columns []pgColumn, text func(pgColumn) string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = text(c)
	}
	return strings.Join(out, ", ")
}

func newPGColumn(c row.Column, index int) pgColumn {
	out := pgColumn{Column: c, index: index, element: "text", oid: 25}
	switch c.Kind {
	case row.KindInteger:
		out.element, out.oid = "int8", 20
	case row.KindFloat:
		out.element, out.oid = "float8", 701
	case row.KindBoolean:
		out.element, out.oid = "bool", 16
	case row.KindTimestamp:
		out.element, out.oid = "timestamptz", 1184
		if c.DBType == "timestamp without time zone" {
			out.element, out.oid = "timestamp", 1114
		}
	case row.KindDate:
		out.element, out.oid = "date", 1082
	case row.KindBytes:
		out.element, out.oid = "bytea", 17
	}
	return out
}

// Where PostgreSQL's times and dates start, in microseconds and days since 1970.
const (
	pgEpoch    = 946_684_800_000_000
	pgEpochDay = 10_957
)

// encode appends the column of all rows in PostgreSQL's binary array format:
// dimensions, null flag, element type, length, lower bound; then the elements,
// each after its length.
func (c *pgColumn) encode(buf []byte, rows []row.Row) ([]byte, error) {
	u32 := binary.BigEndian.AppendUint32
	buf = u32(u32(u32(u32(u32(buf, 1), 1), c.oid), uint32(len(rows))), 1)
	var err error
	for i := range rows {
		if buf, err = c.append(buf, &rows[i].Values[c.index]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// append appends one value of the column after its length, as arrays and COPY have it.
func (c *pgColumn) append(buf []byte, v *row.Value) ([]byte, error) {
	u32 := binary.BigEndian.AppendUint32
	if v.IsNull() {
		return u32(buf, math.MaxUint32), nil // length -1
	}
	if c.element == "text" {
		start := len(buf)
		buf = sql.AppendText(u32(buf, 0), v)
		binary.BigEndian.PutUint32(buf[start:], uint32(len(buf)-start-4))
		return buf, nil
	}
	if v.Kind() != c.Kind {
		return buf, &sql.WrongKind{Column: c.Column, Kind: v.Kind()}
	}
	switch c.Kind {
	case row.KindInteger:
		buf = binary.BigEndian.AppendUint64(u32(buf, 8), uint64(v.Int()))
	case row.KindFloat:
		buf = binary.BigEndian.AppendUint64(u32(buf, 8), math.Float64bits(v.Float()))
	case row.KindBoolean:
		bit := byte(0)
		if v.Bool() {
			bit = 1
		}
		buf = append(u32(buf, 1), bit)
	case row.KindTimestamp:
		buf = binary.BigEndian.AppendUint64(u32(buf, 8), uint64(v.Time().UnixMicro()-pgEpoch))
	case row.KindDate:
		buf = u32(u32(buf, 4), uint32(int32(v.Time().Unix()/86400-pgEpochDay)))
	case row.KindBytes:
		buf = append(u32(buf, uint32(len(v.Text()))), v.Text()...)
	}
	return buf, nil
}
