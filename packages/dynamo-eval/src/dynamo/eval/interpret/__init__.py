"""Symbolic execution of bytecode: `InstructionTranslator` and one handler per opcode, by family in `ops`."""
