"""Reference pipelines, written as a user would write them: public `hotspan` names only."""
