// Package config reads baton's configuration, which consists of one YAML file, environment variables and flags.
//
//	file ── Load ──► Config ── Overlay(environment) ── Overlay(flags) ── WithDefaults ── Validate
//
// The function Read does all of this for commands. It returns all problems together, each with its place, so that an operator can correct a
// file in one step:
//
//	baton.yaml:12:5: jobs[1].schedule: ...
//	--ttl: election.ttl: ...
//
// The package guesses nothing and ignores nothing. A key that this version does not know is an error, even if a later version may know it.
// The values of secret fields never appear in a problem, in Show or in Hash.
//
// The package does not know Redis, SQL or cron. The caller passes checks that need another package in Checks, such as the check of a
// schedule or of a key pattern.
package config
