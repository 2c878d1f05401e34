package message

// Asker says who asks for a call and why. Only Client is known for certain; everything
// else is what the client says of itself.
type Asker struct {
	Client         string   `json:"client"` // name of the token
	Program        *Program `json:"program,omitempty"`
	AgentID        string   `json:"agent_id,omitempty"`
	ConversationID string   `json:"conversation_id,omitempty"`
	Description    string   `json:"description,omitempty"`   // argument of the call; the first 2000 bytes
	Justification  string   `json:"justification,omitempty"` // same
}

// Program is what a client calls itself in its hello.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}
