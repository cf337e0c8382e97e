// Package source has the kinds of sources that a flush reads from Redis. Each describes itself by a Spec, in one registry, Sources; the
// part that the configuration needs of it is in spec.Kinds. Every script is a file of its own beside the code that runs it.
//
// A new kind of source is a file with its Spec, a line in Sources, an entry in spec.Kinds, and what feeds it: an entry in the
// conformances of the tests here, and a fixture in test/crash. Rows of vanished keys are deleted only if the kind's policy says so. A
// kind of states that does not read everything needs Mark. A setting that no other kind has is a field of config.From, too.
package source
