package rig

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// User is a row of about 150 bytes in 6 columns, including the id.
type User struct {
	Name, Email, Bio string
	Visits           int64
	Seen             time.Time
}

// BioLength is the length of the Bio of every User.
const BioLength = 80

// UserOf returns the row of an id, which is always the same row.
func UserOf(id int64) User {
	var bio strings.Builder
	for seed := uint64(id); bio.Len() < BioLength; {
		seed = seed*6364136223846793005 + 1442695040888963407
		bio.WriteString(strconv.FormatUint(seed>>8, 36))
	}
	return User{
		Name:   fmt.Sprintf("Somebody %07d", id),
		Email:  fmt.Sprintf("user%07d@example.com", id),
		Bio:    bio.String()[:BioLength],
		Visits: id*7 + 1,
		Seen:   time.Unix(1_700_000_000+id, 0).UTC(),
	}
}

// Fields returns the names and the texts of the columns, without the id.
func (u User) Fields() []any {
	return []any{"name", u.Name, "email", u.Email, "bio", u.Bio, "visits", u.Visits, "seen", u.Seen.Format(time.RFC3339)}
}

// JSON returns the row as one object. The row's texts need no escapes.
func (u User) JSON(id int64) string {
	return fmt.Sprintf(`{"id":%d,"name":%q,"email":%q,"bio":%q,"visits":%d,"seen":%q}`,
		id, u.Name, u.Email, u.Bio, u.Visits, u.Seen.Format(time.RFC3339))
}

// UsersTable returns the statement that creates the table of users in PostgreSQL. constraint is the constraint of the id.
func UsersTable(name, constraint string) string {
	return fmt.Sprintf("CREATE TABLE %s (id bigint %s, name text NOT NULL, email text NOT NULL, bio text NOT NULL, "+
		"visits bigint NOT NULL, seen timestamptz NOT NULL)", name, constraint)
}

// AsTheyArrive returns n of the ids from 1 to of, in the order of changes. The order is random, but the same in every run.
func AsTheyArrive(n, of int) []int64 {
	ids := make([]int64, of)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(of, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return slices.Clone(ids[:n])
}

// InKeyOrder returns the same ids, sorted.
func InKeyOrder(n, of int) []int64 {
	ids := AsTheyArrive(n, of)
	slices.Sort(ids)
	return ids
}
