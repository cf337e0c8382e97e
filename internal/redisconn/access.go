package redisconn

import "slices"

// Access lists the commands that a part of baton sends to Redis. A preflight checks that baton's user may send them.
type Access struct {
	Subject string // the subject of findings; "": the server
	Keys    []KeyCommands
	Follows bool // a job reads the server's replication stream
	// Consequence is a text that says what fails if a command is refused. Shows is a text that says when the failure is noticed without a
	// preflight, such as "at the first flush".
	Consequence, Shows string
}

// KeyCommands lists the commands that baton sends to the server that has the key named Key.
type KeyCommands struct {
	Key string
	// baton always sends the commands in Commands. It also sends the commands that ByType returns for the type of the key. The type
	// "" means that the type is unknown. Names maps words in the commands to keys and channels. If a word stands for many names,
	// Patterns has a pattern of the ACL that grants all of these names.
	Commands []string
	ByType   func(holds string) []string
	Names    map[string]string
	Patterns map[string]string
}

// Sent returns the commands that baton sends if the argument holds is the type of the key.
func (p KeyCommands) Sent(holds string) []string {
	if p.ByType == nil {
		return p.Commands
	}
	return slices.Concat(p.Commands, p.ByType(holds))
}
