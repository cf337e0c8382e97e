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

// compiledPlan is a plan as PostgreSQL statements. Every column travels as one array:
// a batch of any size is one statement with as many parameters as columns.
type compiledPlan struct {
	upsert, remove, update string
	counted                string // upsert whose rows the server counts as it begins them
	unload                 string // upsert from the staging table
	merge                  string // update of the rows that are there, upsert of the others; "": as upsert
	adds                   []int  // columns that are added to
	staging                stagingTable
	columns, key           []planColumn
	formats                []int16 // one per column: binary
}

// planColumn is a column and the array it travels in.
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

// merges: of rows that take away from a sum, or were refused, those that are there are updated
// first, and only the others upserted. The database checks the row that an upsert would insert,
// also where there is one already, and would refuse -1 for a column that must not be negative,
// although 10 - 1 is not. The upsert also handles a row that somebody else has inserted
// meanwhile, and two rows whose keys are equal for the database.
//
// An upsert finds rows by an index. The index may compare with an operator in a schema that is
// not searched. Types with such an operator are left to upserts, and so are the tables that
// demand it.
func merges(p *row.Plan) bool {
	for _, k := range p.Key {
		if p.Columns[k].Kind == row.KindOther {
			return false
		}
	}
	return len(p.Key) > 0 && sql.Changes(p) && !p.Keep && !p.Table.UpsertOnly
}

// takeAway reports whether one of the rows is to make a sum less.
func (p *compiledPlan) takeAway(rows []row.Row) bool {
	for _, i := range p.adds {
		if slices.ContainsFunc(rows, func(r row.Row) bool { return r.Values[i].Negative() }) {
			return true
		}
	}
	return false
}

// conflict says what happens to a row that is there. Without a key every row
// is a new one.
//
// An upsert finds each row by the unique index and so costs the same whatever the table's size;
// it has no join that could be planned badly. Updating the rows that are there first saves the
// server at most a tenth where all are there, and costs it a third more where none is.
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

// updates adds without a cast: only the sum must fit the column.
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
	if len(set) == 0 { // it is only asked whether the row is there
		name := quote.Ident(p.Columns[p.Key[0]].Name)
		set = []string{name + " = t." + name}
	}
	return set
}

func quotedName(c planColumn) string { return quote.Ident(c.Name) }

// cast casts to the type without its length. A cast to varchar(5) would cut,
// where the assignment to such a column refuses.
func cast(c planColumn) string {
	return "u.c" + strconv.Itoa(c.index+1) + "::" + c.DBType
}

func unnest(columns []planColumn) string { return arrays(columns, "$%d::%s[]") }

// lookups is unnest for statements that search rows of the table. The planner does not see how long
// the arrays are, takes them for short, and uses the index: for 5,000 rows of 100,000 it would
// read the whole table, with every batch.
func lookups(columns []planColumn) string { return arrays(columns, "(SELECT $%d::%s[])") }

func arrays(columns []planColumn, format string) string {
	n := 0
	return "unnest(" + list(columns, func(c planColumn) string {
		n++
		return fmt.Sprintf(format, n, c.element)
	}) + ")"
}

// nameList calls the columns of a row source as cast does.
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

// Where PostgreSQL's times and dates start, in microseconds and days since 1970.
const (
	epoch    = 946_684_800_000_000
	epochDay = 10_957
)

// encode appends the column of all rows in PostgreSQL's binary array format:
// dimensions, null flag, element type, length, lower bound; then the elements,
// each after its length.
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

// append appends one value of the column after its length, as arrays and COPY have it.
func (c *planColumn) append(buf []byte, v *row.Value) ([]byte, error) {
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
		buf = binary.BigEndian.AppendUint64(u32(buf, 8), uint64(v.Time().UnixMicro()-epoch))
	case row.KindDate:
		buf = u32(u32(buf, 4), uint32(int32(v.Time().Unix()/86400-epochDay)))
	case row.KindBytes:
		buf = append(u32(buf, uint32(len(v.Text()))), v.Text()...)
	}
	return buf, nil
}
