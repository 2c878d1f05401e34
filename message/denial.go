package message

const maxDenials = 16

// Denial is one access that the sandbox denied.
type Denial struct {
	Kind    string `json:"kind" enum:"file,socket,host,name,protected,syscall,limit"`
	Op      string `json:"op" jsonschema:"what was tried: read, write, connect to, …"`
	Target  string `json:"target" jsonschema:"the path, host, name of a system call or limit"`
	Exact   bool   `json:"exact" jsonschema:"toold refused it itself; false: inferred from the output and confirmed by what the sandbox allows"`
	Setting string `json:"setting" jsonschema:"the key of the configuration, or the rule of the policy, that governs it"`
	Hint    string `json:"hint" jsonschema:"why, and what to do next"`
}
