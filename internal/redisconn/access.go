package redisconn

import "slices"

// Access lists the commands that a part of baton sends to Redis, for a preflight of permissions.
type Access struct {
	Subject string // the subject of findings; "": the server
	Places  []Place
	Follows bool // a job reads its replication stream
	// Consequence of a refusal, and when it shows without a check: "at the first flush".
	Consequence, Shows string
}

// Place lists commands for the node that has a key.
type Place struct {
	Key string
	// Commands are sent always; ByType by the type of the key, "" if the type is unknown. Names maps words in the commands to keys and
	// channels. A word that stands for many names has a pattern of the ACL in Patterns that grants them all.
	Commands []string
	ByType   func(holds string) []string
	Names    map[string]string
	Patterns map[string]string
}

// Sent are the commands that are sent if the key has this type.
func (p Place) Sent(holds string) []string {
	if p.ByType == nil {
		return p.Commands
	}
	return slices.Concat(p.Commands, p.ByType(holds))
}
