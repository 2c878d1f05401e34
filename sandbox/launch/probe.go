package launch

// Feature is a layer of the sandbox.
type Feature struct {
	Name   string // e.g. "user namespaces"
	OK     bool
	Detail string // e.g. "version 7"; may be empty
	Why    string // why it does not work
	Fix    string // how to fix it, usually a command
}
