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

// compiledPlan contains the PostgreSQL statements of a plan. Every column is sent as one array, so a batch of any size is one statement
// with as many parameters as columns.
type compiledPlan struct {
	upsert, remove, update string
	counted                string // upsert that makes the server count the rows that it begins
	unload                 string // upsert from the staging table
	merge                  string // update of existing rows and upsert of other rows; if "", upsert is used
	adds                   []int  // columns to whose values the plan adds
	staging                stagingTable
	columns, key           []planColumn
	formats                []int16 // binary, one per column
}

// planColumn is a column with the type of the array that carries its values.
type planColumn struct {
	row.Column
	index   int
	element string // type of the array's elements
	oid     uint32
}

func compile(p *row.Plan) *compiledPlan {
	out := &compiledPlan{}
	for i, c := range p.Columns {
		out.columns = append(out.columns, newColumn(c.Column, i))
		out.formats = append(out.formats, 1)
		if c.Op == row.OpAdd {
			out.adds = append(out.adds, i)
		}
	}
	for _, i := range p.Key {
		out.key = append(out.key, out.columns[i])
	}
	table := quote.Table(p.Table.Name)
	insert := "INSERT INTO " + table + " AS t (" + list(out.columns, quotedName) + ") SELECT " + list(out.columns, cast) + " FROM "
	out.staging = newStagingTable(out.columns)
	arrays := insert + unnest(out.columns) + " AS " + nameList(out.columns)
	out.upsert, out.counted = arrays+conflict(p), arrays+countRow+conflict(p)
	out.unload = insert + "pg_temp." + out.staging.name + " AS u" + conflict(p)
	if len(out.key) == 0 {
		return out
	}
	var all []string
	for _, c := range out.key {
		all = append(all, "t."+quote.Ident(c.Name)+" = "+cast(c))
	}
	same := strings.Join(all, " AND ")
	update := "UPDATE " + table + " AS t SET " + strings.Join(updates(p, out.columns), ", ") + " FROM "
	out.remove = "DELETE FROM " + table + " AS t USING " + lookups(out.key) + " AS " + nameList(out.key) + " WHERE " + same
	out.update = update + lookups(out.columns) + " AS " + nameList(out.columns) + " WHERE " + same
	if merges(p) {
		numbered := " WITH ORDINALITY AS " + nameList(out.columns, "n")
		out.merge = "WITH done AS (" + update + lookups(out.columns) + numbered + " WHERE " + same + " RETURNING u.n) " +
			insert + unnest(out.columns) + numbered + " WHERE u.n NOT IN (SELECT n FROM done)" + conflict(p)
	}
	return out
}

// merges reports whether existing rows may be updated first, and only the other rows upserted. This is done for rows that subtract from a
// sum, and for rows that were refused. The database checks the row that an upsert would insert, even if the row exists. So it would refuse
// -1 for a column that must not be negative, although 10 - 1 is not negative. The upsert also handles a row that another client has
// inserted at the same time, and two rows whose keys are equal for the database.
//
// An upsert finds rows by an index. The index may compare with an operator in a schema outside the search path. Therefore types with such
// an operator are written only by upserts, and so are tables that require upserts.
func merges(p *row.Plan) bool {
	for _, k := range p.Key {
		if p.Columns[k].Kind == row.KindOther {
			return false
		}
	}
	return len(p.Key) > 0 && sql.Changes(p) && !p.Keep && !p.Table.UpsertOnly
}

// takeAway reports whether one of the rows subtracts from a sum.
func (p *compiledPlan) takeAway(rows []row.Row) bool {
	for _, i := range p.adds {
		if slices.ContainsFunc(rows, func(r row.Row) bool { return r.Values[i].Negative() }) {
			return true
		}
	}
	return false
}

// conflict returns the ON CONFLICT clause, which says what happens to an existing row. For a plan without a key it returns "", so every row
// is inserted.
//
// An upsert finds each row by the unique index, so its cost does not depend on the table's size. It also has no join that could be planned
// badly. If all rows exist, an update before the upsert saves the server at most a tenth of the time. If no row exists, that update costs a
// third more time.
func conflict(p *row.Plan) string {
	if len(p.Key) == 0 {
		return ""
	}
	key := make([]string, len(p.Key))
	for i, k := range p.Key {
		key[i] = quote.Ident(p.Columns[k].Name)
	}
	var set []string
	for i, c := range p.Columns {
		name := quote.Ident(c.Name)
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

// updates returns the assignments of an update. It adds values without a cast, because only the sum must fit the column.
func updates(p *row.Plan, columns []planColumn) []string {
	var set []string
	for i, c := range p.Columns {
		name, value := quote.Ident(c.Name), cast(columns[i])
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
	if len(set) == 0 { // the statement only checks whether the row exists
		name := quote.Ident(p.Columns[p.Key[0]].Name)
		set = []string{name + " = t." + name}
	}
	return set
}

func quotedName(c planColumn) string { return quote.Ident(c.Name) }

// cast returns a cast to the type without its length. A cast to varchar(5) would cut the value, but an assignment to such a column refuses
// a longer value.
func cast(c planColumn) string {
	return "u.c" + strconv.Itoa(c.index+1) + "::" + c.DBType
}

func unnest(columns []planColumn) string { return arrays(columns, "$%d::%s[]") }

// lookups returns the arrays with the values of rows, for statements that search the table for these rows. The planner does not see the
// length of the arrays, assumes that they are short, and uses the index. If it knew the length, it would read the whole table for 5,000
// rows of 100,000, for every batch.
func lookups(columns []planColumn) string { return arrays(columns, "(SELECT $%d::%s[])") }

func arrays(columns []planColumn, format string) string {
	n := 0
	return "unnest(" + list(columns, func(c planColumn) string {
		n++
		return fmt.Sprintf(format, n, c.element)
	}) + ")"
}

// nameList returns an SQL list of names for the columns of the rows that a statement gets as arrays. The method cast refers to the columns
// by the same names.
func nameList(columns []planColumn, more ...string) string {
	names := []string{list(columns, func(c planColumn) string { return "c" + strconv.Itoa(c.index+1) })}
	return "u(" + strings.Join(append(names, more...), ", ") + ")"
}

func list(columns []planColumn, text func(planColumn) string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = text(c)
	}
	return strings.Join(out, ", ")
}

func newColumn(c row.Column, index int) planColumn {
	out := planColumn{Column: c, index: index, element: "text", oid: 25}
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

// epoch and epochDay are the origins of PostgreSQL's times and dates. They are in microseconds and in days since 1970.
const (
	epoch    = 946_684_800_000_000
	epochDay = 10_957
)

// encode appends the column of all rows in PostgreSQL's binary array format: dimensions, null flag, element type, length and lower bound,
// and then the elements. Each element follows its length.
func (c *planColumn) encode(buf []byte, rows []row.Row) ([]byte, error) {
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

// append appends the length and the bytes of one value, in the form of arrays and of COPY.
func (c *planColumn) append(buf []byte, v *row.Value) ([]byte, error) {
	u32 := binary.BigEndian.AppendUint32
	if v.IsNull() {
		return u32(buf, math.MaxUint32), nil // the length -1 means NULL
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
		buf = binary.BigEndian.AppendUint64(u32(buf, 8), uint64(v.Time().UnixMicro()-epoch))
	case row.KindDate:
		buf = u32(u32(buf, 4), uint32(int32(v.Time().Unix()/86400-epochDay)))
	case row.KindBytes:
		buf = append(u32(buf, uint32(len(v.Text()))), v.Text()...)
	}
	return buf, nil
}
