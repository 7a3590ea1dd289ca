"""Models: the Transformer that is trained (torch) and the engine that runs it (CTranslate2)."""
