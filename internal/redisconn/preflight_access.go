package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
)

// access checks the permission of every command that will be sent. Redis checks permissions
// before it queues a command of a transaction, and the transaction is discarded: nothing is
// executed. This needs no further permission and works in every version; ACL DRYRUN would need
// one that baton's user does not have.
func (x *examination) access(ctx context.Context, s *Store) {
	subject := x.subject
	defer func() { x.subject = subject }()
	for _, a := range x.options.Accesses {
		if x.subject = a.Subject; a.Subject == "" {
			x.subject = subject
		}
		lacks := lacking{}
		var err error
		for _, p := range a.Places {
			if err = lacks.ask(ctx, s, p); err != nil {
				x.add(finding.SeverityInfo, fmt.Sprintf("the permissions of its user could not be checked: %v", err),
					"a missing permission shows "+a.Shows, "run doctor again")
				break
			}
		}
		x.lacks(lacks, a.Consequence)
	}
}

// lacking lists a user's missing permissions: commands, and keys or their patterns, and channels, each with the refused command.
type lacking struct{ commands, keys map[string]string }

// ask tries the commands of a place. Only errors about permissions count.
func (l *lacking) ask(ctx context.Context, s *Store, p Place) error {
	holds := ""
	if p.ByType != nil {
		var err error
		holds, err = redis.String(s.Run(ctx, p.Key, func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, "TYPE", p.Key) }))
		if err != nil {
			holds = "" // the refusal is reported with the others
		}
	}
	c, err := s.Dial(ctx, p.Key)
	if err != nil {
		return err
	}
	defer c.Close() // drops a queued transaction
	c = Unrouted(c) // a row may be on another node, but only permissions matter
	if _, err := redis.DoContext(c, ctx, "MULTI"); err != nil {
		return err
	}
	if l.commands == nil {
		l.commands, l.keys = map[string]string{}, map[string]string{}
	}
	for _, command := range p.Sent(holds) {
		words := strings.Fields(command)
		args, touched := make([]any, len(words)-1), []string{}
		for i, word := range words[1:] {
			args[i] = word
			if name, ok := p.Names[word]; ok {
				args[i], touched = name, append(touched, cmp.Or(p.Patterns[word], Glob(name)))
			}
		}
		if words[0] == "MULTI" || words[0] == "EXEC" {
			continue // done just now, or ends the transaction
		}
		_, err := redis.DoContext(c, ctx, words[0], args...)
		var refusal redis.Error
		switch {
		case err == nil:
		case !errors.As(err, &refusal):
			return err
		case Code(refusal) == "NOPERM":
			l.note(string(refusal), words[0], touched)
		}
	}
	_, err = redis.DoContext(c, ctx, "DISCARD")
	return err
}

// note sorts a refusal: the command is not permitted, or its keys. Of several keys it blames those without a known permission.
func (l *lacking) note(refusal, name string, touched []string) {
	if strings.Contains(refusal, "run the") { // it names the command
		l.commands[strings.ToLower(name)] = ""
		return
	}
	if len(touched) > 1 && slices.ContainsFunc(touched, func(key string) bool { return l.keys[key] != "" }) {
		return
	}
	for _, key := range touched {
		l.keys[key] = name
	}
}

// lacks is the finding of missing permissions, with the ACL rules that grant them.
func (x *examination) lacks(l lacking, consequence string) {
	if len(l.commands)+len(l.keys) == 0 {
		return
	}
	var what, grants []string
	for _, name := range sortedNames(l.commands) {
		what = append(what, strings.ToUpper(name))
		grants = append(grants, "+"+name)
	}
	for _, key := range sortedNames(l.keys) {
		what = append(what, key)
		sign := "~"
		if name := l.keys[key]; name == "PUBLISH" || name == "SUBSCRIBE" {
			sign = "&"
		}
		grants = append(grants, sign+key)
	}
	x.add(finding.SeverityError, "the redis user may not use "+strings.Join(short(what), ", "), consequence,
		"ACL SETUSER … "+strings.Join(short(grants), " ")+" (docs/redis.md has the whole line)")
}

// short shortens a list.
func short(names []string) []string {
	const most = 12
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

func sortedNames(set map[string]string) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
